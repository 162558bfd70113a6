"""The world of a session: the shop's database, and the customer at the other end of the line."""

import json
import sqlite3
from typing import Any

from office_customer import GONE, Persona, answer
from office_deeds import perform
from office_tables import SCHEMA, connect

from hud_mcp import ActionFailed, EmptyWorld, Look, NoWorld, Observation, Say, User, When

__all__ = ["Customer", "Office", "OfficeWorld"]


class OfficeWorld(EmptyWorld):
    """One desk: a private database, and one customer.

    All that happens is in the database, the conversation too, so that the same calls on the same
    shop lead to the same state.

    Attributes:
        db: The database.
        opening: What it held when the customer wrote first.
    """

    def __init__(self) -> None:
        self.db: sqlite3.Connection = connect()
        self.db.executescript(SCHEMA)
        self.opening = b""
        self._persona: Persona | None = None

    def begin(self, persona: Persona) -> None:
        """Let a customer write, once the shop is as it should be then."""
        self.db.commit()
        self._persona, self.opening = persona, self.db.serialize()

    def do(self, tool: str, **args: Any) -> str:
        """Change the database, and remember how much had been said before.

        Raises:
            ActionFailed: It cannot be done, or no task was started. Nothing has changed.
        """
        self._customer()
        done = perform(self.db, tool, args)
        with self.db:
            self.db.execute("INSERT INTO deeds VALUES (?, ?)", (tool, len(self.messages)))
        return done

    def say(self, text: str) -> str:
        """Send the customer a message, and return the reply.

        Raises:
            ActionFailed: The customer has left, or no task was started.
        """
        persona = self._customer()
        before = [marks for _, _, marks in self.messages]
        if any("gone" in marks for marks in before):
            raise ActionFailed(f"{GONE} Finish what is left to do, and submit your answer.")
        reply = answer(persona, before, text)
        row = (text, reply.text, json.dumps(reply.marks))
        with self.db:
            self.db.execute("INSERT INTO messages VALUES (?, ?, ?)", row)
        return reply.text

    @property
    def messages(self) -> list[tuple[str, str, list[str]]]:
        """What was said to the customer, the reply, and the marks of the reply."""
        rows = self.db.execute("SELECT * FROM messages ORDER BY rowid").fetchall()
        return [(said, reply, json.loads(marks)) for said, reply, marks in rows]

    async def observe(self, look: Look) -> Observation:
        """Return the conversation so far, the last messages where it is long.

        Raises:
            EnvironmentFailed: The desk is closed.
        """
        await super().observe(look)
        if not look.text:
            return Observation()
        first = [] if self._persona is None else [f"Customer: {self._persona.opening}"]
        pairs = [(f"You: {said}", f"Customer: {reply}") for said, reply, _ in self.messages]
        text = "\n".join([*first, *(line for pair in pairs for line in pair)])
        return Observation(text=text[-look.max_text_chars :] or "Nobody has written yet.")

    async def close(self) -> None:
        """Close the database. Again is no error."""
        await super().close()
        self.db.close()

    def _customer(self) -> Persona:
        if self._persona is None:
            raise ActionFailed("Nobody has written yet. Start a task first.")
        return self._persona


class Customer(User):
    """The customer of a desk's case, who answers by the persona of the case.

    Args:
        office: The desk, whose database has the conversation.
        persona: The customer's script.
    """

    def __init__(self, office: OfficeWorld, persona: Persona) -> None:
        opening = (When(say=persona.opening),)
        goal = "The customer wants help with the case in the shop's database."
        super().__init__(goal=goal, script=opening, turns=1000, chars=20_000, name="customer")
        self._office, self._message, self._answers = office, "", 0

    async def answer(self, reply: Any = "") -> Say:
        """Answer a message, also an empty one."""
        self._message = str(reply)
        return await super().answer(reply)

    def by_script(self, message: str) -> Any:
        """Speak as the persona does, and keep both in the database."""
        self._answers += 1
        try:
            said = self._office.say(self._message)
        except ActionFailed as left:
            said = str(left)
        return super().by_script(message).model_copy(update={"text": said})

    def check(self) -> None:
        """Raise ValueError where somebody else spoke for the customer: nobody can judge that."""
        if self._answers < sum(map(bool, self.said)):  # the words at a limit are empty
            raise ValueError("only the script's own customer can be graded, and not a person")


class Office(NoWorld):
    """Declares a desk of the shop."""

    name = "office"
    world_type = OfficeWorld
    is_destructive = True
