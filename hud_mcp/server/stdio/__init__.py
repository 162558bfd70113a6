"""MCP over the process's standard input and output, in both protocol eras, without a thread hop.

`descriptors.claim_stdio` takes the two descriptors away from everything else in the process.
`serve.serve_stdio` serves a low-level `mcp` server on them until the client leaves or a signal
arrives. It runs on asyncio: reads happen when the descriptor is readable, each request is handled
in a task of its own, and each reply is one write.

It differs from the SDK's own transport in more than speed. A line that is not a message is
answered. Frames and requests in flight are bounded. A slow reader slows the server down instead of
filling its memory. A handler's unexpected failure never shows its text. Every ending is orderly and
bounded.
"""
