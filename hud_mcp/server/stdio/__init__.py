"""MCP over the process's standard input and output, in both protocol eras, without a thread hop.

`claim.claim_stdio` takes the two descriptors away from everything else in the process;
`serve.serve_stdio` serves a low-level `mcp` server on them until the client leaves or a signal
arrives. It runs on asyncio: reads happen when the descriptor is readable, each request is handled
in a task of its own, and each reply is one write.

What differs from the SDK's own transport, besides the speed: a line that is not a message is
answered, frames and requests in flight are bounded, a slow reader slows the server down instead of
filling its memory, a handler's unexpected failure never shows its text, and every ending is orderly
and bounded.
"""
