"""The phone of a user of tau2's carrier: its radio, its settings and its apps.

The radio searches the network anew when a setting changes that it depends on. It finds none
without a SIM card, in airplane mode, with a wrong APN, and while the line is not active.
"""

from collections.abc import Mapping
from typing import Any

from tau2_tables import Database, Row

from hud_mcp import ActionFailed

__all__ = [
    "APN", "NOUNS", "around", "change", "device_of", "edit", "fly", "has_data",
    "leave_wifi", "on_off", "permissions", "permit", "sends_mms", "sim_of",
    "simulate_network_search", "speed_of", "status_bar", "tables", "toggle", "told",
]  # fmt: skip

NOUNS = {"phone": "Part"}

APN: Mapping[str, Any] = {
    "apn_name": "internet", "reset_at_reboot": False, "mms_apn": "mms",
    "mmsc_url": "http://mms.carrier.com/mms/wapenc", "mms_proxy": None, "mms_port": None,
}  # fmt: skip
PERMISSIONS = ("sms", "storage", "phone", "network")
DEVICE: Mapping[str, Any] = {
    "sim_card_status": "active", "sim_card_missing": False, "airplane_mode": False,
    "network_signal_strength": "good", "network_technology_connected": "5G",
    "network_connection_status": "connected", "battery_level": 80, "data_enabled": True,
    "roaming_enabled": False, "network_mode_preference": "4g_5g_preferred",
    "active_apn_settings": APN, "wifi_enabled": False, "wifi_connected": False, "wifi_ssid": None,
    "wifi_signal_strength": "none", "wifi_calling_enabled": False,
    "wifi_calling_mms_over_wifi": False, "data_saver_mode": False, "vpn_enabled_setting": False,
    "vpn_connected": False, "vpn_details": None, "app_statuses": {},
}  # fmt: skip
VPN = {"server_address": "192.168.1.1", "protocol": "OpenVPN", "server_performance": "excellent"}
AROUND: Mapping[str, Any] = {
    "name": None, "phone_number": None, "is_abroad": False, "roaming_allowed": False,
    "signal_strength": {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"},
    "mobile_data_usage_exceeded": False, "line_active": True, "payment_request": None,
    "vpn_server": VPN,
}  # fmt: skip
"""The state of a phone and of its surroundings where the files do not tell another."""

SPEEDS = {"none": 0.0, "2G": 0.25, "3G": 3.0, "4G": 55.0, "5G": 275.0}
"""The speed of each network in Mbps, with all bars."""
SHARES = {"none": 0.0, "poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}
GRADES = ((1, "Very Poor"), (5, "Poor"), (25, "Fair"), (100, "Good"))
BARS = {
    "none": "📵 No Signal", "poor": "📶¹ Poor", "fair": "📶² Fair", "good": "📶³ Good",
    "excellent": "📶⁴ Excellent",
}  # fmt: skip


def tables(db: Mapping[str, Any]) -> dict[str, dict[str, Row]]:
    """Return the one table of a user's file: the phone, and what surrounds it."""
    device = {**DEVICE, **db.get("device", {})}
    device["active_apn_settings"] = {**APN, **device["active_apn_settings"]}
    return {"phone": {"device": device, "surroundings": {**AROUND, **db.get("surroundings", {})}}}


def device_of(db: Database) -> Row:
    """Return the phone, to look at."""
    return db["phone"]["device"]


def edit(db: Database) -> Row:
    """Return the phone, to change."""
    return db["phone"].edit("device")


def around(db: Database) -> Row:
    """Return the surroundings, to look at."""
    return db["phone"]["surroundings"]


def on_off(is_on: object) -> str:
    """Return a switch's state as a word."""
    return "on" if is_on else "off"


def sim_of(device: Row) -> str:
    """Return the state of the SIM card."""
    return "missing" if device["sim_card_missing"] else device["sim_card_status"]


def permissions(device: Row, app_name: str) -> Row:
    """Return the permissions of an app; ActionFailed where there is no such app."""
    if app_name not in device["app_statuses"]:
        raise ActionFailed(f"The phone has no app {app_name!r}")
    return device["app_statuses"][app_name]["permissions"]


def permit(db: Database, app_name: str, permission: str, *, is_given: bool) -> str:
    """Give an app a permission, or take it."""
    name = permission.lower()
    if name not in PERMISSIONS:
        raise ActionFailed(f"The permissions of an app are {', '.join(PERMISSIONS)}")
    permissions(device_of(db), app_name)
    permissions(edit(db), app_name)[name] = is_given
    return told(db, f"The app {app_name!r} may {'use' if is_given else 'not use'}: {name}.")


def told(db: Database, text: str) -> str:
    """Return a text with the status bar under it."""
    return f"{text}\nStatus bar: {status_bar(db)}"


def change(db: Database, name: str, value: Any, text: str) -> str:
    """Change a setting of the phone on which the network depends, and search the network."""
    edit(db)[name] = value
    simulate_network_search(db)
    return told(db, text)


def toggle(db: Database, name: str, title: str, *, searches: bool = True) -> str:
    """Turn a setting on or off."""
    device = edit(db)
    device[name] = not device[name]
    if searches:
        simulate_network_search(db)
    return told(db, f"{title} is {on_off(device[name])} now.")


def fly(db: Database, *, is_on: bool) -> str:
    """Turn airplane mode on or off, which ends Wi-Fi, and a VPN where it goes on."""
    device = edit(db)
    if is_on or device["wifi_enabled"]:
        leave_wifi(db)
    if is_on:
        device.update(vpn_connected=False, vpn_details=None)
    return change(db, "airplane_mode", is_on, f"Airplane mode is {on_off(is_on)} now.")


def leave_wifi(db: Database) -> None:
    """End the connection to a Wi-Fi network."""
    edit(db).update(wifi_connected=False, wifi_ssid=None, wifi_signal_strength="none")


def has_data(db: Database) -> bool:
    """Whether mobile data works."""
    device, place = device_of(db), around(db)
    is_connected = (
        not device["airplane_mode"]
        and device["network_signal_strength"] != "none"
        and device["network_connection_status"] != "no_service"
    )
    may_roam = device["roaming_enabled"] and place["roaming_allowed"]
    is_reachable = may_roam or not place["is_abroad"]
    is_left = not place["mobile_data_usage_exceeded"]
    return bool(is_connected and is_reachable and device["data_enabled"] and is_left)


def speed_of(db: Database) -> tuple[float | None, str]:
    """Return the speed of mobile data in Mbps, if there is one, and its grade."""
    if not has_data(db):
        return None, "no connection"
    device = device_of(db)
    details = device["vpn_details"] or {}
    is_slow = device["vpn_connected"] and details.get("server_performance") == "poor"
    share = (0.1 if is_slow else 1.0) * (0.2 if device["data_saver_mode"] else 1.0)
    full = SPEEDS.get(device["network_technology_connected"], 0.0)
    speed = round(full * SHARES.get(device["network_signal_strength"], 0.0) * share, 2)
    return speed, next((grade for most, grade in GRADES if speed < most), "Excellent")


def sends_mms(db: Database) -> bool:
    """Whether the messaging app can send picture messages."""
    device = device_of(db)
    by_wifi = device["wifi_calling_enabled"] and device["wifi_calling_mms_over_wifi"]
    app = device["app_statuses"].get("messaging", {}).get("permissions", {})
    is_set = device["active_apn_settings"]["mmsc_url"] is not None
    is_fast = device["network_technology_connected"] != "2G"
    may = bool(app.get("storage") and app.get("sms"))
    return has_data(db) and is_fast and is_set and may and not by_wifi


def status_bar(db: Database) -> str:
    """Return the icons of the status bar."""
    device = device_of(db)
    network = device["network_technology_connected"]
    icons: list[str] = []
    if device["airplane_mode"]:
        icons.append("✈️ Airplane Mode")
    else:
        icons.append(BARS[device["network_signal_strength"]])
        has_network = network != "none"
        has_switch = device["data_enabled"] and has_network
        icons += [network] * has_network
        icons.append("📱 Data Enabled" if has_switch else "📵 Data Disabled")
        icons += ["🔽 Data Saver"] * bool(has_switch and device["data_saver_mode"])
    if device["wifi_enabled"] and device["wifi_connected"]:
        name = device["wifi_ssid"]
        icons.append(f"📡 Connected to {name}" if name else "📡 Enabled")
    icons += ["🔒 VPN Connected"] * bool(device["vpn_connected"])
    return " | ".join([*icons, f"🔋 {device['battery_level']}%"])


def simulate_network_search(db: Database) -> None:
    """Search the network, and connect to what the preference, the SIM card and the line allow."""
    device, place = edit(db), around(db)
    apn, bars = device["active_apn_settings"]["apn_name"], place["signal_strength"]
    is_off = device["airplane_mode"] or apn == "broken" or not place["line_active"]
    if is_off or sim_of(device) != "active":
        status, network, signal = "no_service", "none", "none"
    else:
        preferred = device["network_mode_preference"]
        fast = "4G" if bars.get("5G", "none") == "none" else "5G"
        network = fast if preferred == "4g_5g_preferred" else preferred.partition("_")[0].upper()
        status, signal = "connected", bars.get(network, "none")
    device.update(
        network_connection_status=status,
        network_technology_connected=network,
        network_signal_strength=signal,
    )
