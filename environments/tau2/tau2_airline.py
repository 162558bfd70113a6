"""The airline of tau2: flights, reservations and passengers, and what a desk may do with them.

What a tool accepts and changes is what the benchmark's own tools accept and change.
"""

from typing import Annotated, Any, Literal

from pydantic import Field
from tau2_tables import Database, Row
from typing_extensions import TypedDict

from hud_mcp import ActionFailed

__all__ = ["NOUNS", "READS", "WRITES"]

NOUNS = {"flights": "Flight", "users": "User", "reservations": "Reservation"}

NOW = "2024-05-15T15:00:00"
"""The time in all of its conversations."""

NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")
BAG_USD = 50
INSURANCE_USD = 30
AIRPORTS = {
    "SFO": "San Francisco", "JFK": "New York", "LAX": "Los Angeles", "ORD": "Chicago",
    "DFW": "Dallas", "DEN": "Denver", "SEA": "Seattle", "ATL": "Atlanta", "MIA": "Miami",
    "BOS": "Boston", "PHX": "Phoenix", "IAH": "Houston", "LAS": "Las Vegas", "MCO": "Orlando",
    "EWR": "Newark", "CLT": "Charlotte", "MSP": "Minneapolis", "DTW": "Detroit",
    "PHL": "Philadelphia", "LGA": "LaGuardia",
}  # fmt: skip


class FlightOf(TypedDict):
    """One flight of a reservation."""

    flight_number: str
    date: str


class Passenger(TypedDict):
    """One passenger."""

    first_name: str
    last_name: str
    dob: str


class Payment(TypedDict):
    """A payment in one way."""

    payment_id: str
    amount: int


Airport = Annotated[str, Field(description="Three letters, such as SFO.")]
Day = Annotated[str, Field(description="Such as 2024-05-20.")]
Cabin = Literal["basic_economy", "economy", "business"]
ReservationId = Annotated[str, Field(description="Such as ZFA04Y.")]
PaymentId = Annotated[
    str, Field(description="Of the user's profile, such as credit_card_7815826 or gift_card_…")
]
UserId = Annotated[str, Field(description="Such as sara_doe_496.")]


def get_user_details(db: Database, user_id: UserId) -> Row:
    """Look at a user: membership, ways to pay, and the ids of their reservations."""
    return db["users"][user_id]


def get_reservation_details(db: Database, reservation_id: ReservationId) -> Row:
    """Look at a reservation."""
    return db["reservations"][reservation_id]


def get_flight_status(db: Database, flight_number: str, date: Day) -> str:
    """Look up whether a flight of a day is available, on time, delayed, flying or cancelled."""
    return _day(db, flight_number, date)["status"]


def list_all_airports(db: Database) -> list[dict[str, str]]:  # noqa: ARG001  # as the others
    """List the airports with their cities."""
    return [{"iata": iata, "city": city} for iata, city in AIRPORTS.items()]


def search_direct_flight(
    db: Database, origin: Airport, destination: Airport, date: Day
) -> list[Row]:
    """Search the flights between two airports on a day, with their seats and prices."""
    return _flights(db, date, origin, destination)


def search_onestop_flight(
    db: Database, origin: Airport, destination: Airport, date: Day
) -> list[list[Row]]:
    """Search pairs of flights between two airports that meet at a third one."""
    found: list[list[Row]] = []
    for first in _flights(db, date, origin):
        arrival = first["scheduled_arrival_time_est"]
        day = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
        found += [
            [{**first, "date": date}, {**second, "date": day}]
            for second in _flights(db, day, first["destination"], destination, after=arrival)
        ]
    return found


def book_reservation(
    db: Database,
    user_id: UserId,
    *,
    origin: Airport,
    destination: Airport,
    flight_type: Literal["one_way", "round_trip"],
    cabin: Cabin,
    flights: list[FlightOf],
    passengers: list[Passenger],
    payment_methods: list[Payment],
    total_baggages: int,
    nonfree_baggages: int,
    insurance: Literal["yes", "no"],
) -> Row:
    """Book a reservation. What is paid must be the price of flights, insurance and bags."""
    user, count = db["users"][user_id], len(passengers)
    key = next((each for each in NEW_RESERVATIONS if each not in db["reservations"]), None)
    if key is None:
        raise ActionFailed("Too many reservations")
    booked = [_seats(db, each, cabin, count) for each in flights]
    price = sum(each["price"] for each in booked) * count
    price += INSURANCE_USD * count * (insurance == "yes") + BAG_USD * nonfree_baggages
    for payment in payment_methods:
        method = _method(user, payment["payment_id"])
        if method["source"] != "credit_card" and method["amount"] < payment["amount"]:
            raise ActionFailed(f"Not enough balance in payment method {payment['payment_id']}")
    paid = sum(payment["amount"] for payment in payment_methods)
    if paid != price:
        told = f"Payment amount does not add up, total price is {price}, but paid {paid}"
        raise ActionFailed(told)
    user = db["users"].edit(user_id)
    for payment in payment_methods:
        _spend(user, payment)
    for each in booked:
        dates = db["flights"].edit(each["flight_number"])["dates"]
        dates[each["date"]]["available_seats"][cabin] -= count
    user["reservations"].append(key)
    reservation: Row = {
        "reservation_id": key,
        "user_id": user_id,
        "origin": origin,
        "destination": destination,
        "flight_type": flight_type,
        "cabin": cabin,
        "flights": booked,
        "passengers": [dict(each) for each in passengers],
        "payment_history": [dict(each) for each in payment_methods],
        "created_at": NOW,
        "total_baggages": total_baggages,
        "nonfree_baggages": nonfree_baggages,
        "insurance": insurance,
    }
    return db["reservations"].put(key, reservation)


def cancel_reservation(db: Database, reservation_id: ReservationId) -> Row:
    """Cancel a whole reservation, and pay back what was paid."""
    reservation = db["reservations"].edit(reservation_id)
    history = reservation["payment_history"]
    history += [{**each, "amount": -each["amount"]} for each in history]
    reservation["status"] = "cancelled"
    return reservation


def update_reservation_flights(
    db: Database,
    reservation_id: ReservationId,
    cabin: Cabin,
    flights: Annotated[
        list[FlightOf], Field(description="All of the reservation, with those that stay.")
    ],
    payment_id: PaymentId,
) -> Row:
    """Change the flights or the cabin of a reservation, and pay or get the difference."""
    reservation = db["reservations"][reservation_id]
    count = len(reservation["passengers"])
    kept = reservation["flights"] if cabin == reservation["cabin"] else []
    new: list[Row] = []
    for flight in flights:
        wanted = (flight["flight_number"], flight["date"])
        same = [each for each in kept if (each["flight_number"], each["date"]) == wanted]
        new.append(same[0] if same else _seats(db, flight, cabin, count))
    before = sum(each["price"] for each in reservation["flights"])
    price = (sum(each["price"] for each in new) - before) * count
    _pay_change(db, reservation, payment_id, price)
    reservation = db["reservations"].edit(reservation_id)
    reservation |= {"flights": [dict(each) for each in new], "cabin": cabin}
    return reservation


def update_reservation_baggages(
    db: Database,
    reservation_id: ReservationId,
    total_baggages: int,
    nonfree_baggages: int,
    payment_id: PaymentId,
) -> Row:
    """Change the bags of a reservation, and pay for those that are not free."""
    reservation = db["reservations"][reservation_id]
    more = max(0, nonfree_baggages - reservation["nonfree_baggages"])
    _pay_change(db, reservation, payment_id, BAG_USD * more)
    reservation = db["reservations"].edit(reservation_id)
    reservation |= {"total_baggages": total_baggages, "nonfree_baggages": nonfree_baggages}
    return reservation


def update_reservation_passengers(
    db: Database, reservation_id: ReservationId, passengers: list[Passenger]
) -> Row:
    """Change the passengers of a reservation; their number stays."""
    if len(passengers) != len(db["reservations"][reservation_id]["passengers"]):
        raise ActionFailed("Number of passengers does not match")
    reservation = db["reservations"].edit(reservation_id)
    reservation["passengers"] = [dict(each) for each in passengers]
    return reservation


def send_certificate(db: Database, user_id: UserId, amount: int) -> str:
    """Send a user a certificate over an amount."""
    methods = db["users"][user_id]["payment_methods"]
    key = next((each for each in NEW_CERTIFICATES if each not in methods), None)
    if key is None:
        raise ActionFailed("Too many certificates")
    certificate = {"source": "certificate", "id": key, "amount": amount}
    db["users"].edit(user_id)["payment_methods"][key] = certificate
    return f"Certificate {key} added to user {user_id} with amount {amount}."


READS = (
    get_user_details,
    get_reservation_details,
    get_flight_status,
    list_all_airports,
    search_direct_flight,
    search_onestop_flight,
)
WRITES = (
    book_reservation,
    cancel_reservation,
    update_reservation_flights,
    update_reservation_baggages,
    update_reservation_passengers,
    send_certificate,
)


def _day(db: Database, flight_number: str, date: str) -> Row:
    dates = db["flights"][flight_number]["dates"]
    if date not in dates:
        raise ActionFailed(f"Flight {flight_number} not found on date {date}")
    return dates[date]


def _flights(
    db: Database, date: str, origin: str, destination: str | None = None, after: str = ""
) -> list[Row]:
    """The flights of a day with free seats; `after` is the time of an arrival."""
    found: list[Row] = []
    for flight in db["flights"].values():
        day = flight["dates"].get(date, {})
        if (
            flight["origin"] == origin
            and destination in (None, flight["destination"])
            and day.get("status") == "available"
            and flight["scheduled_departure_time_est"] >= after
        ):
            plain = {name: value for name, value in flight.items() if name != "dates"}
            found.append({**plain, **day})
    return found


def _seats(db: Database, flight: Any, cabin: str, count: int) -> Row:
    """One flight for a reservation, which has seats enough."""
    number, date = flight["flight_number"], flight["date"]
    day = _day(db, number, date)
    if day["status"] != "available":
        raise ActionFailed(f"Flight {number} not available on date {date}")
    if day["available_seats"][cabin] < count:
        raise ActionFailed(f"Not enough seats on flight {number}")
    places = {name: db["flights"][number][name] for name in ("origin", "destination")}
    return {"flight_number": number, **places, "date": date, "price": day["prices"][cabin]}


def _method(user: Row, payment_id: str) -> Row:
    if payment_id not in user["payment_methods"]:
        raise ActionFailed(f"Payment method {payment_id} not found")
    return user["payment_methods"][payment_id]


def _spend(user: Row, payment: Payment) -> None:
    """Take money from a gift card, or a whole certificate; credit cards have no balance."""
    method = _method(user, payment["payment_id"])
    if method["source"] == "gift_card":
        method["amount"] -= payment["amount"]
    elif method["source"] == "certificate":
        del user["payment_methods"][payment["payment_id"]]


def _pay_change(db: Database, reservation: Row, payment_id: str, price: int) -> None:
    """Pay for a change of a reservation, or get money back."""
    method = _method(db["users"][reservation["user_id"]], payment_id)
    if method["source"] == "certificate":
        raise ActionFailed("Certificate cannot be used to update reservation")
    if method["source"] == "gift_card":
        if method["amount"] < price:
            raise ActionFailed("Gift card balance is not enough")
        card = db["users"].edit(reservation["user_id"])["payment_methods"][payment_id]
        card["amount"] -= price
    if price != 0:
        history = db["reservations"].edit(reservation["reservation_id"])["payment_history"]
        history.append({"payment_id": payment_id, "amount": price})
