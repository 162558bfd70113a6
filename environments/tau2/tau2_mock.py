"""The small domain of tau2 for trying things out: users with tasks, and a user's notifications."""

from typing import Any, Literal

from tau2_tables import Database, Row

__all__ = ["CHECKS", "MEANS", "NOUNS", "READS", "USER_CALLS", "USER_CHECKS", "USER_NOUNS", "WRITES"]

NOUNS = {"tasks": "Task", "users": "User"}
USER_NOUNS = {"notifications": "Notification"}

Status = Literal["pending", "completed"]


def get_users(db: Database) -> list[Row]:
    """List the users with the ids of their tasks."""
    return list(db["users"].values())


def create_task(db: Database, user_id: str, title: str, description: str | None = None) -> Row:
    """Create a task of a user."""
    key = f"task_{len(db['tasks']) + 1}"
    db["users"].edit(user_id)["tasks"].append(key)
    row = {"task_id": key, "title": title, "description": description, "status": "pending"}
    return db["tasks"].put(key, row)


def update_task_status(db: Database, task_id: str, status: Status) -> Row:
    """Set the status of a task."""
    task = db["tasks"].edit(task_id)
    task["status"] = status
    return task


def assert_task_status(db: Database, task_id: str, expected_status: Status) -> bool:
    """Whether a task has a status."""
    return db["tasks"][task_id]["status"] == expected_status


def assert_number_of_tasks(db: Database, user_id: str, expected_number: int) -> bool:
    """Whether a user has a number of tasks."""
    return len(db["users"][user_id]["tasks"]) == expected_number


def check_notifications(db: Database) -> list[Row]:
    """List your notifications."""
    return list(db["notifications"].values())


def dismiss_notification(db: Database, notification_id: str) -> str:
    """Mark a notification of yours as read."""
    db["notifications"].edit(notification_id)["status"] = "read"
    return f"Notification {notification_id} dismissed"


def add_notification(
    db: Database, notification_id: str, message: str, task_id: str | None = None
) -> Row:
    """Send the user a notification."""
    row: dict[str, Any] = {"notification_id": notification_id, "message": message}
    return db["notifications"].put(notification_id, {**row, "status": "unread", "task_id": task_id})


def assert_notification_status(db: Database, notification_id: str, expected_status: str) -> bool:
    """Whether a notification has a status."""
    return db["notifications"][notification_id]["status"] == expected_status


READS = (get_users,)
WRITES = (create_task, update_task_status)
CHECKS = (assert_task_status, assert_number_of_tasks)
USER_CALLS = (check_notifications, dismiss_notification)
USER_CHECKS = (add_notification, assert_notification_status)
MEANS = {
    "assert_task_status": (
        "assistant", "update_task_status", {"task_id": "task_id", "status": "expected_status"},
    ),
    "assert_notification_status": (
        "user", "dismiss_notification", {"notification_id": "notification_id"},
    ),
}  # fmt: skip
"""The call that meets an assertion: its side, its name, and the assertion's names of arguments."""
