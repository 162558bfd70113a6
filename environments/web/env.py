"""Three sites of some size, with tasks on each: a wiki, a mail client and a booking site.

Each site's content is drawn from the task's seed. A task is graded on the state in which it leaves
its site, and on the answer. A site's pages are in `sites/`, its modules begin with its name.
"""

import web_booking_rivals
import web_booking_tasks
import web_mail_arrivals
import web_mail_tasks
import web_wiki_rivals
import web_wiki_tasks
from web_backend import backend

from hud_mcp import Browser, Environment

env = Environment(
    "web",
    version="0.1.0",
    world=Browser(site="sites/", backend=backend, state={}, start=None),
)

web_booking_tasks.declare(env)
web_mail_tasks.declare(env)
web_mail_arrivals.declare(env)
web_booking_rivals.declare(env)
web_wiki_tasks.declare(env)
web_wiki_rivals.declare(env)
