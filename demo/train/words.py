"""The words that recall documents are made of: short, so that the tokenizer
gives most of them a token of their own."""

NAMES = (
    "Mara Tobin Lena Corin Della Faro Greta Hugo Ilsa Jory Kara Lorin Mina Nils "
    "Olga Perrin Quill Rosa Sven Tilda Ulric Vera Wendel Yara Zeno Alma Bruno "
    "Clara Doran Elsa Finn Gwen Harlan Ines Jonas Katya Lukas Milo Nadia Orson "
    "Paula Rufus Selma Tomas Una Viktor Wanda Boris Cora Dirk Edda Flora Gunter "
    "Hanna Ivan Joan Kurt Livia Marek Nora Oskar Petra Ralf Silke"
).split()

ADJECTIVES = (
    "brass silver golden iron wooden white black red green blue old new broken "
    "little great bright dark long round heavy"
).split()

NOUNS = (
    "key lamp cup sword staff crown ring coat book bell knife spoon bowl rope "
    "drum horn mirror chain basket candle hammer needle shield arrow blanket "
    "kettle ladder wheel purse saddle mask feather"
).split()

FAMILIES = (
    "Baker Smith Tailor Weaver Potter Miller Painter Sailor Shepherd Carpenter "
    "Mason Fisher Singer Teacher Farmer Hunter Butcher Clerk Cook Barber Printer "
    "Archer Cooper Turner Walker Fuller"
).split()

TOWNS = (
    "Rome Paris London Vienna Prague Lisbon Dublin Oslo Athens Cairo Berlin "
    "Madrid Milan Venice Krakow Riga Geneva Naples Seville Tunis Lyon Bergen "
    "Porto Turin York Bath"
).split()

NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty "
    "fifty sixty seventy eighty"
).split()

FOODS = (
    "bread salt oil honey milk figs wine cheese apples barley beans fish butter "
    "garlic grapes lentils mustard nuts olives onions pears pepper plums rice "
    "sugar wheat"
).split()
