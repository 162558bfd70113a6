"""The tools of a user of tau2's carrier: what a hand does on the phone."""

from typing import Any, Literal

from tau2_phone import (
    APN,
    around,
    change,
    device_of,
    edit,
    fly,
    leave_wifi,
    on_off,
    permissions,
    permit,
    sends_mms,
    sim_of,
    simulate_network_search,
    speed_of,
    status_bar,
    toggle,
    told,
)
from tau2_tables import Database

from hud_mcp import ActionFailed

__all__ = ["CALLS"]

Mode = Literal["4g_5g_preferred", "4g_only", "3g_only", "2g_only"]


def check_status_bar(db: Database) -> str:
    """Read the icons at the top of the screen: signal, network, data, Wi-Fi, VPN and battery."""
    return f"Status bar: {status_bar(db)}"


def check_network_status(db: Database) -> str:
    """Look at the connections: SIM card, signal, network, mobile data, roaming and Wi-Fi."""
    device = device_of(db)
    lines = {
        "Airplane mode": on_off(device["airplane_mode"]),
        "SIM card": sim_of(device),
        "Cellular connection": device["network_connection_status"],
        "Cellular signal": device["network_signal_strength"],
        "Cellular network": device["network_technology_connected"],
        "Mobile data": on_off(device["data_enabled"]),
        "Data roaming": on_off(device["roaming_enabled"]),
        "Wi-Fi": on_off(device["wifi_enabled"]),
        "Wi-Fi network": device["wifi_ssid"] if device["wifi_connected"] else "none",
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def check_network_mode_preference(db: Database) -> str:
    """Look at the kind of network that the phone prefers."""
    return f"Preferred networks: {device_of(db)['network_mode_preference']}"


def set_network_mode_preference(db: Database, mode: Mode) -> str:
    """Choose the kind of network that the phone prefers; 4G and 5G are fast."""
    if mode not in Mode.__args__:
        raise ActionFailed(f"{mode!r} is none of {', '.join(Mode.__args__)}")
    return change(db, "network_mode_preference", mode, f"Preferred networks: {mode}.")


def run_speed_test(db: Database) -> str:
    """Measure the speed of mobile data."""
    speed, grade = speed_of(db)
    return f"Speed test: {grade if speed is None else f'{speed:.2f} Mbps, {grade}'}."


def toggle_airplane_mode(db: Database) -> str:
    """Turn airplane mode on or off. It ends all connections while it is on."""
    return fly(db, is_on=not device_of(db)["airplane_mode"])


def check_sim_status(db: Database) -> str:
    """Look whether the SIM card is active, missing, or locked with a PIN or a PUK."""
    return f"The SIM card is: {sim_of(device_of(db))}."


def reseat_sim_card(db: Database) -> str:
    """Take the SIM card out and put it in again."""
    return change(db, "sim_card_missing", value=False, text="The SIM card is in its place.")


def toggle_data(db: Database) -> str:
    """Turn mobile data on or off."""
    return toggle(db, "data_enabled", "Mobile data")


def toggle_roaming(db: Database) -> str:
    """Turn data roaming on or off, which is mobile data in other countries."""
    return toggle(db, "roaming_enabled", "Data roaming")


def check_data_restriction_status(db: Database) -> str:
    """Look whether data saver mode limits the data."""
    return f"Data saver mode is {on_off(device_of(db)['data_saver_mode'])}."


def toggle_data_saver_mode(db: Database) -> str:
    """Turn data saver mode on or off. It makes mobile data slower while it is on."""
    return toggle(db, "data_saver_mode", "Data saver mode", searches=False)


def check_apn_settings(db: Database) -> str:
    """Look at the access point: its name, and the address for picture messages (MMSC)."""
    apn = device_of(db)["active_apn_settings"]
    return f"APN name: {apn['apn_name']}\nMMSC URL: {apn['mmsc_url'] or 'not set'}"


def set_apn_settings(db: Database, apn_settings: dict[str, Any]) -> str:
    """Set the access point's fields: apn_name, mms_apn, mmsc_url, mms_proxy and mms_port."""
    if not apn_settings.keys() <= APN.keys():
        raise ActionFailed(f"The settings of an APN are {', '.join(APN)}")
    if (name := apn_settings.get("apn_name", "internet")) not in ("internet", "broken"):
        raise ActionFailed(f"{name!r} is none of internet, broken")
    told = f"The APN is {name!r}."
    return change(db, "active_apn_settings", {**APN, **apn_settings}, told)


def reset_apn_settings(db: Database) -> str:
    """Have the access point's settings reset when the phone restarts."""
    apn = {**device_of(db)["active_apn_settings"], "reset_at_reboot": True}
    return change(db, "active_apn_settings", apn, "The APN settings are reset at the next restart.")


def check_wifi_status(db: Database) -> str:
    """Look whether Wi-Fi is on, and which network it has."""
    device = device_of(db)
    if not device["wifi_connected"]:
        return f"Wi-Fi is {on_off(device['wifi_enabled'])}, without a network."
    return f"Wi-Fi is on: {device['wifi_ssid']!r}, signal {device['wifi_signal_strength']}."


def toggle_wifi(db: Database) -> str:
    """Turn Wi-Fi on or off; not in airplane mode."""
    if device_of(db)["airplane_mode"]:
        raise ActionFailed("Wi-Fi cannot be changed in airplane mode")
    if device_of(db)["wifi_enabled"]:
        leave_wifi(db)
    return toggle(db, "wifi_enabled", "Wi-Fi", searches=False)


def check_wifi_calling_status(db: Database) -> str:
    """Look whether calls go over Wi-Fi."""
    return f"Wi-Fi calling is {on_off(device_of(db)['wifi_calling_enabled'])}."


def toggle_wifi_calling(db: Database) -> str:
    """Turn calls over Wi-Fi on or off."""
    return toggle(db, "wifi_calling_enabled", "Wi-Fi calling", searches=False)


def check_vpn_status(db: Database) -> str:
    """Look whether a VPN is connected, and its details."""
    device = device_of(db)
    if not device["vpn_connected"]:
        return (
            f"No VPN is connected; in the settings it is {on_off(device['vpn_enabled_setting'])}."
        )
    details = (device["vpn_details"] or {}).items()
    return "A VPN is connected. " + ", ".join(f"{name}: {value}" for name, value in details)


def connect_vpn(db: Database) -> str:
    """Connect the VPN."""
    if not device_of(db)["vpn_connected"]:
        edit(db).update(vpn_connected=True, vpn_details=around(db)["vpn_server"])
    return told(db, "The VPN is connected.")


def disconnect_vpn(db: Database) -> str:
    """Disconnect the VPN."""
    if not device_of(db)["vpn_connected"]:
        return told(db, "No VPN is connected.")
    edit(db).update(vpn_connected=False, vpn_details=None)
    return told(db, "The VPN is disconnected.")


def check_installed_apps(db: Database) -> str:
    """List the apps on the phone."""
    return f"Apps: {', '.join(device_of(db)['app_statuses'])}"


def check_app_status(db: Database, app_name: str) -> str:
    """Look at an app, with its permissions."""
    return check_app_permissions(db, app_name)


def check_app_permissions(db: Database, app_name: str) -> str:
    """Look at the permissions of an app."""
    given = [name for name, is_given in permissions(device_of(db), app_name).items() if is_given]
    return f"The app {app_name!r} may use: {', '.join(given) or 'nothing'}."


def grant_app_permission(db: Database, app_name: str, permission: str) -> str:
    """Give an app a permission: sms, storage, phone or network."""
    return permit(db, app_name, permission, is_given=True)


def can_send_mms(db: Database) -> str:
    """Try whether the messaging app can send picture messages (MMS)."""
    return f"The messaging app {'can' if sends_mms(db) else 'cannot'} send MMS."


def reboot_device(db: Database) -> str:
    """Restart the phone."""
    if device_of(db)["active_apn_settings"]["reset_at_reboot"]:
        edit(db)["active_apn_settings"] = dict(APN)
    simulate_network_search(db)
    return told(db, "The phone has restarted.")


def check_payment_request(db: Database) -> str:
    """Look whether the carrier has sent you a request to pay a bill."""
    request = around(db)["payment_request"]
    if request is None:
        return "There is no request to pay."
    return f"There is a request to pay bill {request['bill_id']}: ${request['amount_due']}."


def make_payment(db: Database) -> str:
    """Pay the bill that the carrier has asked you to pay."""
    request = around(db)["payment_request"]
    if request is None:
        return "There is no request to pay."
    db["phone"].edit("surroundings")["payment_request"] = {**request, "paid": True}
    return f"Bill {request['bill_id']} is paid: ${request['amount_due']}."


CALLS = (
    check_status_bar, check_network_status, check_network_mode_preference,
    set_network_mode_preference, run_speed_test, toggle_airplane_mode, check_sim_status,
    reseat_sim_card, toggle_data, toggle_roaming, check_data_restriction_status,
    toggle_data_saver_mode, check_apn_settings, set_apn_settings, reset_apn_settings,
    check_wifi_status, toggle_wifi, check_wifi_calling_status, toggle_wifi_calling,
    check_vpn_status, connect_vpn, disconnect_vpn, check_installed_apps, check_app_status,
    check_app_permissions, grant_app_permission, can_send_mms, reboot_device,
    check_payment_request, make_payment,
)  # fmt: skip
