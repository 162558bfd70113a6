"""Work in a shell: logs, tables, configuration, programs, archives and git histories.

Each template draws its files from a seed. What an agent leaves is graded in a verifier, where no
agent has been; programs of an agent's run there on inputs that only the template knows.
"""

import shell_arrivals
import shell_backups
import shell_branches
import shell_build
import shell_cron
import shell_database
import shell_full_disk
import shell_history
import shell_logs
import shell_merging
import shell_migration
import shell_package
import shell_scripts
import shell_search
import shell_service
import shell_tables

from hud_mcp import Environment, Shell

env = Environment("shell", version="0.1.0", world=Shell())
for part in (
    shell_search,
    shell_logs,
    shell_cron,
    shell_tables,
    shell_database,
    shell_merging,
    shell_migration,
    shell_backups,
    shell_package,
    shell_scripts,
    shell_build,
    shell_service,
    shell_history,
    shell_branches,
    shell_arrivals,
    shell_full_disk,
):
    part.declare(env)
