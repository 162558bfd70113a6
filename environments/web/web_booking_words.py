"""The words of which the booking site's towns, places, rooms and reviews are made."""

__all__ = [
    "ARRIVALS",
    "BLURBS",
    "CABINS",
    "CODES",
    "FACILITIES",
    "FESTIVALS",
    "FIRST_NAMES",
    "GUEST_HOUSES",
    "HOTELS",
    "KINDS",
    "LAST_NAMES",
    "PRAISE",
    "REGIONS",
    "ROOMS",
    "SIGHTS",
    "TOWNS",
    "TRAVELLERS",
    "TROUBLE",
]

TOWNS = (
    "Aldervik", "Brannholm", "Corvane", "Dunmere", "Estermouth", "Fenwick Sands", "Gildhaven",
    "Harrowby", "Ilmstad", "Kestrel Bay", "Lindsow", "Morvath", "Norrbeck", "Ostergate",
    "Pellwick", "Quillan", "Ravensund", "Selvik Vale", "Thornau", "Ulverstrand",
)  # fmt: skip
REGIONS = ("the Amber Coast", "the Upper Lakes", "the Slate Hills", "the Northern Isles")
SIGHTS = ("Lighthouse", "Harbour", "Boat pier", "Cable car", "Old castle", "Botanical garden")
FESTIVALS = ("Lantern Week", "the Regatta", "the Wool Fair", "the Jazz Days", "the Cider Festival")

KINDS = ("Hotel", "Guest house", "Cabin")
HOTELS = (
    "Hotel Amberlight", "Grand Meridian", "The Copper Crane", "Hotel Solvang", "Parkside Inn",
    "The Blue Anchor", "Hotel Belvedere", "The Weavers' Court", "Hotel Astoria Nord",
    "The Old Customs House", "Hotel Silverlake", "The Station Arms", "Hotel Marlowe",
    "The Glass Pavilion", "Hotel Kronborg", "The Terrace Rooms", "Hotel Windrose", "Quayside Hotel",
    "Hotel Larkspur", "The Merchant's Rest", "Hotel Pomona", "The Red Lion Court",
)  # fmt: skip
GUEST_HOUSES = (
    "Mill Lane House", "The Quince Tree", "Pension Rosenau", "Bramble Cottage Rooms",
    "The Pear Tree",
    "Casa Linnet", "Orchard End", "Pension Waldmann", "The Ferry Rooms", "Ivy Gate House",
    "The Baker's Loft", "Gull's Nest Rooms", "Pension Adele", "The Schoolhouse", "Lavender Yard",
    "Chapel Row House", "The Potter's Rooms", "Pension Morgenstern", "Sorrel House", "Number Nine",
    "The Almond Tree", "Pension Sonnblick", "Harbour View Rooms", "Clover House", "Pension Clara",
    "The Watchmaker's House",
)  # fmt: skip
CABINS = (
    "Fox Hollow Cabin", "Heron Point Cabin", "Birchwater Lodge", "The Woodcutter's Hut",
    "Otter Creek Cabin", "Larch Ridge Lodge", "The Fisherman's Hut", "Moss & Stone Cabin",
    "Elk Meadow Lodge", "Juniper Cabin", "The Beekeeper's Cabin", "Cedar Bend Lodge",
    "Wild Thyme Cabin", "Northstar Lodge", "Pinecone Cabin", "The Shepherd's Hut",
)  # fmt: skip

ROOMS = {
    "Hotel": (
        ("single", "Single room", "1 single bed", 1, 70),
        ("double", "Double room", "1 double bed", 2, 100),
        ("family", "Family room", "1 double bed, 2 single beds", 4, 150),
        ("suite", "Suite", "1 king-size bed, 1 sofa bed", 3, 210),
    ),
    "Guest house": (
        ("twin", "Twin room", "2 single beds", 2, 78),
        ("double", "Double room", "1 double bed", 2, 84),
        ("family", "Family room", "1 double bed, 1 bunk bed", 4, 126),
    ),
    "Cabin": (
        ("small", "Small cabin", "1 double bed, 1 sofa bed", 3, 96),
        ("large", "Large cabin", "2 double beds, 2 single beds", 6, 158),
    ),
}
"""By kind: a short name, the name, the beds, how many sleep there, and about how many euros."""

FACILITIES = (
    "Breakfast", "Parking", "Wi-Fi", "Sauna", "Pool", "Pets allowed", "Kitchen", "Step-free access",
    "Bicycles", "Balcony", "Air conditioning", "Electric car charger",
)  # fmt: skip
ARRIVALS = ("15:00 to 17:00", "17:00 to 19:00", "19:00 to 21:00", "21:00 to 23:00")
TRAVELLERS = ("Family", "Couple", "Solo traveller", "Business traveller", "Group of friends")

FIRST_NAMES = (
    "Ada", "Bram", "Celia", "Dario", "Elin", "Femke", "Goran", "Hanna", "Ivo", "Jonas", "Katya",
    "Lior", "Mira", "Nils", "Olga", "Pavel", "Quentin", "Rosa", "Sami", "Tilde", "Uma", "Viktor",
    "Wanda", "Yusuf", "Zoe",
)  # fmt: skip
LAST_NAMES = (
    "Abel", "Brandt", "Castell", "Dahl", "Ekström", "Farkas", "Grünwald", "Holm", "Iversen",
    "Jansen", "Kowal", "Lindqvist", "Moreau", "Novak", "Okafor", "Petri", "Quist", "Rasmussen",
    "Sørli", "Tanaka", "Urban", "Vance", "Weiss", "Yilmaz", "Zeller",
)  # fmt: skip

PRAISE = (
    "The bed was so good that we slept until ten.",
    "The staff knew every path in the hills.",
    "Breakfast had bread that was still warm.",
    "A quiet street, and yet a short walk from everything.",
    "The view in the morning alone is worth the trip.",
    "Our room was spotless, and larger than it looks in the pictures.",
    "We were given a map with the best bakeries marked on it.",
    "Late arrival was no problem at all.",
    "The bathroom was new, with plenty of hot water.",
    "They lent us umbrellas when it rained.",
)
TROUBLE = (
    "The shower stayed lukewarm.",
    "The lift was out of order for our whole stay.",
    "The church bells begin at six.",
    "The parking space is very narrow.",
    "The Wi-Fi did not reach our room.",
    "The heating clicked all night.",
    "The curtains let in a lot of light.",
    "Nobody answered the telephone after eight.",
)
BLURBS = (
    "A house with thick walls and tall windows, run by the same family for three generations.",
    "Simple, bright rooms, and a garden in which breakfast is served when it is warm.",
    "Restored with care two years ago: old beams, new bathrooms, and good lamps to read by.",
    "At the end of a lane, with birds in the morning and stars at night.",
    "A place for people who like to walk out of the door and be in the middle of things.",
    "Wooden floors, wool blankets, and a stove that is lit in the evening.",
)
CODES = (
    "ANCHOR", "BRIAR", "COMET", "DRIFT", "EMBER", "FJORD", "GROVE", "HAZEL", "INLET", "JUNO",
    "KITE", "LAGOON", "MOSS", "NIMBUS", "OTTER", "PLUME",
)  # fmt: skip
