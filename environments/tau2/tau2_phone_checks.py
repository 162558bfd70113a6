"""The faults with which rows of tau2's carrier begin, and the assertions on the phone."""

from typing import Literal

from tau2_phone import (
    around,
    change,
    device_of,
    edit,
    fly,
    has_data,
    on_off,
    permit,
    sends_mms,
    simulate_network_search,
    speed_of,
)
from tau2_tables import Database

__all__ = ["CHECKS"]


def set_user_info(db: Database, name: str, phone_number: str) -> None:
    """Say whose phone it is."""
    db["phone"].edit("surroundings").update(name=name, phone_number=phone_number)


def set_user_location(db: Database, *, abroad: bool) -> None:
    """Take the user abroad, or home."""
    db["phone"].edit("surroundings")["is_abroad"] = abroad


def turn_airplane_mode_on(db: Database) -> str:
    """Turn airplane mode on."""
    return fly(db, is_on=True)


def turn_airplane_mode_off(db: Database) -> str:
    """Turn airplane mode off."""
    return fly(db, is_on=False)


def turn_data_on(db: Database) -> str:
    """Turn mobile data on, without a search."""
    edit(db)["data_enabled"] = True
    return "Mobile data is on."


def turn_data_off(db: Database) -> str:
    """Turn mobile data off."""
    return change(db, "data_enabled", value=False, text="Mobile data is off.")


def turn_roaming_on(db: Database) -> str:
    """Turn data roaming on."""
    return change(db, "roaming_enabled", value=True, text="Data roaming is on.")


def turn_roaming_off(db: Database) -> str:
    """Turn data roaming off."""
    return change(db, "roaming_enabled", value=False, text="Data roaming is off.")


def turn_data_saver_mode_on(db: Database) -> str:
    """Turn data saver mode on."""
    edit(db)["data_saver_mode"] = True
    return "Data saver mode is on."


def turn_data_saver_mode_off(db: Database) -> str:
    """Turn data saver mode off."""
    edit(db)["data_saver_mode"] = False
    return "Data saver mode is off."


def unseat_sim_card(db: Database) -> str:
    """Take the SIM card out."""
    return change(db, "sim_card_missing", value=True, text="The SIM card is out.")


def lock_sim_card(db: Database, mode: Literal["pin", "puk"]) -> str:
    """Lock the SIM card; no tool of the user's unlocks it."""
    return change(db, "sim_card_status", f"locked_{mode}", f"The SIM card is locked: {mode}.")


def break_apn_settings(db: Database) -> str:
    """Give the access point a wrong name."""
    apn = {**device_of(db)["active_apn_settings"], "apn_name": "broken"}
    return change(db, "active_apn_settings", apn, "The APN is broken.")


def break_apn_mms_setting(db: Database) -> str:
    """Take the address for picture messages away."""
    device = edit(db)
    device["active_apn_settings"] = {**device["active_apn_settings"], "mmsc_url": None}
    return "The APN has no MMSC."


def break_vpn(db: Database) -> str:
    """Connect a VPN whose server is slow, also when it is connected again."""
    place = db["phone"].edit("surroundings")
    place["vpn_server"] = {**place["vpn_server"], "server_performance": "poor"}
    edit(db).update(vpn_connected=True, vpn_details=place["vpn_server"])
    return "The VPN is slow."


def remove_app_permission(db: Database, app_name: str, permission: str) -> str:
    """Take a permission from an app."""
    return permit(db, app_name, permission, is_given=False)


def set_wifi_calling(db: Database, *, enabled: bool, mms_over_wifi: bool | None = None) -> str:
    """Set whether calls, and picture messages, go over Wi-Fi."""
    device = edit(db)
    device["wifi_calling_enabled"] = enabled
    if mms_over_wifi is not None:
        device["wifi_calling_mms_over_wifi"] = mms_over_wifi
    return f"Wi-Fi calling is {on_off(enabled)}."


def assert_airplane_mode_status(db: Database, *, expected_status: bool) -> bool:
    """Whether airplane mode is on, or off."""
    return device_of(db)["airplane_mode"] is expected_status


def assert_service_status(db: Database, expected_status: str) -> bool:
    """Whether the connection has a status."""
    return device_of(db)["network_connection_status"] == expected_status


def assert_mobile_data_status(db: Database, *, expected_status: bool) -> bool:
    """Whether mobile data works, or not."""
    return has_data(db) is expected_status


def assert_mobile_roaming_status(db: Database, *, expected_status: bool) -> bool:
    """Whether data roaming is on, or off."""
    return device_of(db)["roaming_enabled"] is expected_status


def assert_mobile_data_saver_mode_status(db: Database, *, expected_status: bool) -> bool:
    """Whether data saver mode is on, or off."""
    return device_of(db)["data_saver_mode"] is expected_status


def assert_internet_speed(
    db: Database, expected_speed: float, expected_desc: str | None = None
) -> bool:
    """Whether mobile data has a speed in Mbps at least, and a grade."""
    speed, grade = speed_of(db)
    is_graded = expected_desc is None or grade.casefold() == expected_desc.casefold()
    return (speed or 0.0) >= expected_speed and is_graded


def assert_internet_not_excellent(db: Database) -> bool:
    """Whether the speed is less than excellent."""
    return speed_of(db)[1] != "Excellent"


def assert_can_send_mms(db: Database, *, expected_status: bool) -> bool:
    """Whether the messaging app can send picture messages, or cannot."""
    return sends_mms(db) is expected_status


def assert_mobile_data_usage_exceeded(db: Database, *, expected_status: bool) -> bool:
    """Whether the line has used up its data, or not."""
    return around(db)["mobile_data_usage_exceeded"] is expected_status


CHECKS = (
    set_user_info, set_user_location, turn_airplane_mode_on, turn_airplane_mode_off,
    turn_data_on, turn_data_off, turn_roaming_on, turn_roaming_off, turn_data_saver_mode_on,
    turn_data_saver_mode_off, unseat_sim_card, lock_sim_card, break_apn_settings,
    break_apn_mms_setting, break_vpn, remove_app_permission, set_wifi_calling,
    assert_airplane_mode_status, assert_service_status, assert_mobile_data_status,
    assert_mobile_roaming_status, assert_mobile_data_saver_mode_status, assert_internet_speed,
    assert_internet_not_excellent, assert_can_send_mms, assert_mobile_data_usage_exceeded,
    simulate_network_search,
)  # fmt: skip
