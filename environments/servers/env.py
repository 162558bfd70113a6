"""Work with the tools of MCP servers: files, git, a memory, the time of places, and SQL.

Four servers are the reference servers, each in one version; those for SQL are in this folder.
Each template draws its content from a seed. The files and tables that an agent leaves are graded
in a verifier, where no agent has been; its words count for nothing.
"""

import servers_files
import servers_git
import servers_memory
import servers_postgresql
import servers_sql
import servers_time

files = servers_files.declare()
git = servers_git.declare()
memory = servers_memory.declare()
times = servers_time.declare()
sql = servers_sql.declare()
postgresql = servers_postgresql.declare()
