"""Facts about ALFWorld rooms, counted over official games: what a room holds, what stands where, what
fits where. The generator draws from them, the expert searches by them. Data only.
"""

from __future__ import annotations


def _lists(text: str) -> dict[str, list[str]]:
    """`key: word word …` a line (continued where a line has no colon)."""
    table: dict[str, list[str]] = {}
    key = ""
    for line in text.strip().splitlines():
        head, colon, rest = line.partition(":")
        key = head.strip() if colon else key
        table.setdefault(key, []).extend((rest if colon else head).split())
    return table


def _weights(text: str) -> dict[str, dict[str, float]]:
    """`key: word number word number …` a line."""
    return {
        key: {words[i]: float(words[i + 1]) for i in range(0, len(words), 2)} for key, words in _lists(text).items()
    }


# Room and receptacle: the eighths of how many such a room has.
RECEPTACLES: dict[str, list[str]] = _lists("""
    kitchen cabinet: 4 9 10 12 13 18 20 26
    kitchen coffeemachine: 1 1 1 1 1 1 1 1
    kitchen countertop: 1 2 2 2 2 3 3 4
    kitchen diningtable: 0 0 0 0 1 1 1 2
    kitchen drawer: 1 3 3 4 5 6 8 13
    kitchen fridge: 1 1 1 1 1 1 1 1
    kitchen garbagecan: 1 1 1 1 1 1 1 1
    kitchen microwave: 1 1 1 1 1 1 1 1
    kitchen shelf: 0 0 0 0 0 0 0 3
    kitchen sidetable: 0 0 0 0 0 0 0 1
    kitchen sinkbasin: 1 1 1 1 1 1 1 1
    kitchen stoveburner: 4 4 4 4 4 4 4 4
    kitchen toaster: 1 1 1 1 1 1 1 1
    living armchair: 1 1 1 1 1 1 2 2
    living cabinet: 0 0 0 0 0 0 0 1
    living coffeetable: 0 0 1 1 1 1 2 2
    living diningtable: 0 0 0 0 1 1 1 2
    living drawer: 0 0 1 4 4 6 7 12
    living dresser: 0 0 0 0 0 1 1 1
    living garbagecan: 1 1 1 1 1 1 1 1
    living ottoman: 0 0 0 0 0 0 1 1
    living shelf: 0 0 0 0 0 2 8 13
    living sidetable: 0 0 1 1 2 2 3 3
    living sofa: 1 1 1 1 1 1 2 2
    living tvstand: 0 0 0 0 0 1 1 1
    bedroom armchair: 0 0 0 0 0 0 1 2
    bedroom bed: 1 1 1 1 1 1 1 2
    bedroom cabinet: 0 0 0 0 0 0 0 4
    bedroom desk: 0 0 1 1 1 1 1 2
    bedroom diningtable: 0 0 0 0 0 0 0 1
    bedroom drawer: 2 2 3 4 5 6 11 16
    bedroom dresser: 0 0 0 0 1 1 1 2
    bedroom garbagecan: 1 1 1 1 1 1 1 1
    bedroom laundryhamper: 0 0 0 0 0 0 1 1
    bedroom safe: 0 0 0 0 0 0 0 1
    bedroom shelf: 0 0 0 1 1 2 6 9
    bedroom sidetable: 0 0 0 1 1 1 2 2
    bathroom bathtubbasin: 0 0 1 1 1 1 1 1
    bathroom cabinet: 0 0 0 0 3 4 4 5
    bathroom cart: 0 0 0 0 0 0 0 1
    bathroom countertop: 0 1 1 1 1 1 1 2
    bathroom drawer: 0 0 0 0 2 4 6 8
    bathroom dresser: 0 0 0 0 0 0 0 1
    bathroom garbagecan: 1 1 1 1 1 1 1 1
    bathroom handtowelholder: 1 1 1 1 2 2 2 2
    bathroom shelf: 0 0 0 0 0 0 1 3
    bathroom sidetable: 0 0 0 0 0 0 0 1
    bathroom sinkbasin: 1 1 1 1 2 2 2 2
    bathroom toilet: 1 1 1 1 1 1 1 1
    bathroom toiletpaperhanger: 1 1 1 1 1 1 1 1
    bathroom towelholder: 1 1 1 1 1 2 2 2
""")

# Room: object, in how many of 100 such rooms, how many then (mean).
OBJECTS: dict[str, list[str]] = _lists("""
    kitchen: apple 100 1.9 book 12 1.4 bowl 100 1.9 bread 100 1.6 butterknife 98 1.9 cellphone 13 1.7
      creditcard 8 2.1 cup 100 1.9 dishsponge 100 1.9 egg 100 1.9 fork 100 2 glassbottle 28 2 houseplant 35
      1.1 kettle 47 1.8 knife 100 1.9 ladle 39 1.9 lettuce 100 1.8 mug 100 1.9 pan 100 1.3 papertowelroll 33
      1 pen 8 2 pencil 9 2.1 peppershaker 100 2 plate 100 1.9 pot 100 1.5 potato 100 2 saltshaker 100 1.9
      soapbottle 100 2 spatula 100 1.9 spoon 100 2 spraybottle 8 1.9 statue 17 1.8 tomato 100 2 vase 17 2.5
      winebottle 47 2
    living: book 33 1.7 bowl 9 1.6 box 100 1.6 candle 12 3 cellphone 26 1.8 creditcard 100 2.1 desklamp 30 1
      houseplant 100 1.1 keychain 100 2.1 laptop 100 1.6 newspaper 58 2 pen 16 1.9 pencil 16 2.7 pillow 100
      1.2 plate 32 1.8 remotecontrol 100 2.3 statue 98 2.5 television 100 1 tissuebox 40 2.3 vase 54 2.8
      watch 44 1.8 wateringcan 39 1
    bedroom: alarmclock 100 1.8 book 100 1.9 bowl 44 1.6 box 51 1 cd 100 2.2 cellphone 100 2 cloth 11 1.6
      creditcard 100 2.1 desklamp 75 1.1 houseplant 29 1 keychain 100 2.1 laptop 100 1.6 mug 52 1.8 pen 100
      1.8 pencil 100 1.9 pillow 100 1.6 remotecontrol 11 2.3 statue 10 1.5 teddybear 35 1 television 11 1
      tissuebox 10 2.5 vase 6 2.2 watch 1 1
    bathroom: candle 100 2.1 cloth 100 1.9 dishsponge 21 2.1 handtowel 100 1.2 houseplant 4 1 papertowelroll
      17 1 soapbar 100 2 soapbottle 100 2 spraybottle 100 2.1 tissuebox 22 2.2 toiletpaper 100 2.3 towel 100
      1.1
""")

# Object: receptacle, how many of it stand in 100 of these.
PLACES: dict[str, dict[str, float]] = _weights("""
    alarmclock: desk 77 dresser 46 sidetable 16 shelf 5 diningtable 5
    apple: fridge 51 microwave 27 diningtable 27 countertop 19 garbagecan 11 sinkbasin 9 sidetable 1
    book: bed 78 desk 39 dresser 28 sofa 9 coffeetable 8 tvstand 7 diningtable 6 armchair 4 countertop 4
      sidetable 3 drawer 1 cabinet 1
    bowl: desk 45 fridge 36 diningtable 24 tvstand 14 countertop 13 dresser 12 sinkbasin 7 microwave 5 shelf
      4 cabinet 4 sidetable 3
    box: coffeetable 40 sofa 26 diningtable 16 dresser 10 tvstand 7 sidetable 2 desk 2 shelf 1 armchair 1
    bread: diningtable 41 countertop 27 fridge 27 microwave 1 garbagecan 1 sidetable 1
    butterknife: diningtable 52 countertop 36 sinkbasin 6 drawer 2 sidetable 1
    candle: toilet 66 cart 60 coffeetable 8 countertop 7 sidetable 7 dresser 6 diningtable 4 shelf 3 cabinet
      1
    cd: desk 41 dresser 26 sidetable 10 safe 6 garbagecan 4 armchair 4 diningtable 4 shelf 3 drawer 2
    cellphone: bed 52 desk 39 dresser 36 coffeetable 15 safe 12 armchair 10 sidetable 8 countertop 4 drawer
      3 shelf 3 diningtable 3 sofa 2
    cloth: bathtubbasin 78 cart 20 countertop 4 toilet 4 sinkbasin 3 cabinet 1 drawer 1 shelf 1
    creditcard: ottoman 60 coffeetable 55 dresser 46 desk 36 tvstand 36 sidetable 22 armchair 19 sofa 19
      shelf 6 diningtable 6 drawer 4 countertop 3
    cup: fridge 37 diningtable 21 countertop 16 microwave 15 sinkbasin 10 cabinet 3 shelf 3 sidetable 1
    desklamp: desk 43 sidetable 19 dresser 18 coffeetable 2 shelf 1
    dishsponge: diningtable 31 countertop 22 cart 20 bathtubbasin 19 toilet 13 sinkbasin 8 cabinet 3 drawer
      3 shelf 3 garbagecan 3
    egg: fridge 50 microwave 23 sinkbasin 16 countertop 15 diningtable 14 garbagecan 11 sidetable 2
    fork: diningtable 46 countertop 32 sinkbasin 11 drawer 3 sidetable 2
    glassbottle: diningtable 11 countertop 6 fridge 4 sinkbasin 4 cabinet 1 shelf 1
    handtowel: handtowelholder 82 countertop 2
    houseplant: coffeetable 25 desk 18 sidetable 15 tvstand 14 countertop 10 diningtable 6 shelf 2 dresser 2
    kettle: countertop 12 stoveburner 8 diningtable 3 cabinet 1 sinkbasin 1
    keychain: safe 50 desk 45 dresser 38 coffeetable 32 armchair 22 tvstand 21 sofa 19 sidetable 16
      diningtable 10 shelf 4 drawer 3
    knife: diningtable 44 countertop 36 drawer 3 sinkbasin 3 sidetable 1
    ladle: countertop 14 diningtable 11 drawer 1 cabinet 1 sinkbasin 1
    laptop: bed 106 tvstand 36 desk 34 sofa 30 coffeetable 18 diningtable 16 dresser 12 armchair 8 sidetable
      7
    lettuce: diningtable 51 fridge 43 countertop 26 sinkbasin 3 sidetable 1
    mug: fridge 34 coffeemachine 32 desk 27 diningtable 24 countertop 21 dresser 14 microwave 12 sinkbasin
      10 sidetable 9 shelf 3 cabinet 2
    newspaper: sofa 21 coffeetable 20 ottoman 20 diningtable 10 sidetable 4 armchair 4 shelf 2 dresser 2
    pan: stoveburner 22 countertop 21 diningtable 9 fridge 4 cabinet 1
    papertowelroll: countertop 6 diningtable 5 garbagecan 4 shelf 2 sidetable 1
    pen: desk 64 dresser 42 sidetable 13 coffeetable 10 diningtable 9 shelf 3 countertop 2 drawer 1
      garbagecan 1
    pencil: desk 52 dresser 26 sidetable 20 coffeetable 12 diningtable 8 shelf 4 garbagecan 3 countertop 3
      drawer 2
    peppershaker: diningtable 23 countertop 20 cabinet 5 sidetable 4 drawer 3 shelf 3
    pillow: bed 135 sofa 87 ottoman 20 armchair 10
    plate: diningtable 35 fridge 19 countertop 17 coffeetable 12 microwave 6 cabinet 4 sidetable 2 shelf 2
      sinkbasin 1
    pot: stoveburner 33 diningtable 10 fridge 9 countertop 7
    potato: fridge 44 diningtable 29 microwave 24 countertop 22 sinkbasin 14 sidetable 6 garbagecan 5
    remotecontrol: tvstand 57 coffeetable 45 sofa 43 ottoman 20 armchair 17 dresser 16 desk 9 sidetable 8
      diningtable 5 shelf 2 drawer 1
    saltshaker: diningtable 37 countertop 18 sidetable 5 cabinet 4 drawer 3 shelf 3
    soapbar: cart 40 toilet 32 bathtubbasin 19 countertop 9 sinkbasin 8 shelf 2 garbagecan 2 cabinet 1
      sidetable 1
    soapbottle: toilet 55 cart 40 diningtable 38 countertop 35 garbagecan 13 sidetable 7 cabinet 5 shelf 5
    spatula: diningtable 48 countertop 33 sinkbasin 6 drawer 4 sidetable 1
    spoon: diningtable 41 countertop 25 sinkbasin 16 drawer 5 sidetable 2
    spraybottle: cart 80 toilet 45 countertop 14 diningtable 5 garbagecan 4 dresser 4 sidetable 3 cabinet 1
      shelf 1 toaster 1
    statue: coffeetable 68 tvstand 36 sidetable 17 diningtable 17 shelf 11 dresser 10 countertop 8
    teddybear: bed 17
    television: tvstand 71 dresser 26 coffeetable 12
    tissuebox: cart 60 coffeetable 32 sidetable 12 diningtable 11 desk 7 tvstand 7 dresser 6 shelf 2
      countertop 2 toilet 2
    toiletpaper: toilet 45 cart 20 toiletpaperhanger 19 countertop 5 garbagecan 3 shelf 2 cabinet 1
      sidetable 1
    tomato: fridge 63 diningtable 33 countertop 24 sinkbasin 9 garbagecan 8 sidetable 2
    towel: towelholder 89
    vase: tvstand 36 shelf 13 dresser 10 coffeetable 8 diningtable 6 countertop 6 sidetable 5 cabinet 1
    watch: tvstand 29 coffeetable 18 dresser 8 diningtable 3 sidetable 2 shelf 1
    wateringcan: coffeetable 10
    winebottle: diningtable 27 countertop 9 garbagecan 5 cabinet 2 shelf 2 fridge 1
""")

# Receptacle: what may be put there.
CONTAINS: dict[str, list[str]] = _lists("""
    shelf: alarmclock book bowl box candle cd cellphone cloth creditcard cup dishsponge glassbottle
      handtowel kettle keychain mug newspaper pen pencil peppershaker plate pot remotecontrol saltshaker
      soapbar soapbottle spraybottle statue tissuebox toiletpaper vase watch wateringcan winebottle
    drawer: book butterknife candle cd cellphone cloth creditcard dishsponge fork handtowel keychain knife
      ladle newspaper pen pencil peppershaker remotecontrol saltshaker soapbar soapbottle spatula spoon
      spraybottle tissuebox toiletpaper watch wateringcan
    sidetable: alarmclock apple baseballbat basketball book bowl box bread butterknife candle cd cellphone
      cloth creditcard cup dishsponge egg fork handtowel kettle keychain knife laptop lettuce mug newspaper
      pan pen pencil peppershaker plate pot potato remotecontrol saltshaker soapbar soapbottle spatula spoon
      spraybottle statue tennisracket tissuebox toiletpaper tomato vase watch wateringcan winebottle
    dresser: alarmclock basketball book bowl box candle cd cellphone cloth creditcard keychain laptop mug
      newspaper pen pencil plate remotecontrol spraybottle statue tennisracket tissuebox toiletpaper vase
      watch wateringcan
    garbagecan: apple bread cd cloth dishsponge egg handtowel lettuce newspaper pen pencil potato soapbar
      soapbottle spraybottle tissuebox toiletpaper tomato winebottle
    bed: baseballbat basketball book cellphone laptop pillow tennisracket
    desk: alarmclock basketball book bowl box cd cellphone cloth creditcard keychain laptop mug pen pencil
      remotecontrol statue tennisracket tissuebox vase watch wateringcan
    safe: cd cellphone creditcard keychain statue vase
    laundryhamper: cloth
    armchair: book box cellphone cloth creditcard keychain laptop newspaper pillow remotecontrol
    cabinet: book bowl box candle cd cloth cup dishsponge glassbottle handtowel kettle ladle mug newspaper
      pan peppershaker plate plunger pot saltshaker soapbar soapbottle spraybottle tissuebox toiletpaper
      vase wateringcan winebottle
    sofa: book box cellphone creditcard keychain laptop newspaper pillow remotecontrol
    diningtable: alarmclock apple baseballbat book bowl box bread butterknife candle cd cellphone creditcard
      cup dishsponge egg fork glassbottle kettle keychain knife ladle laptop lettuce mug newspaper pan pen
      pencil peppershaker plate pot potato remotecontrol saltshaker soapbottle spatula spoon spraybottle
      statue tissuebox tomato vase watch wateringcan winebottle
    coffeetable: book bowl box candle cellphone creditcard keychain laptop newspaper pen pencil plate
      remotecontrol statue tissuebox vase watch wateringcan
    toilet: candle cloth dishsponge handtowel soapbar soapbottle spraybottle tissuebox toiletpaper
    towelholder: towel
    toiletpaperhanger: toiletpaper
    sinkbasin: apple bowl butterknife cloth cup dishsponge egg fork glassbottle handtowel kettle knife ladle
      lettuce mug pan plate pot potato soapbar spatula spoon tomato
    handtowelholder: handtowel
    countertop: alarmclock apple book bowl bread butterknife candle cd cellphone cloth creditcard cup
      dishsponge egg fork glassbottle handtowel kettle keychain knife ladle laptop lettuce mug pan pen
      pencil peppershaker plate pot potato remotecontrol saltshaker soapbar soapbottle spatula spoon
      spraybottle statue tissuebox toiletpaper tomato vase winebottle
    bathtubbasin: cloth dishsponge handtowel soapbar
    stoveburner: kettle pan pot
    microwave: apple bowl bread cup egg glassbottle mug plate potato tomato
    fridge: apple bowl bread cup egg glassbottle lettuce mug pan plate pot potato tomato winebottle
    coffeemachine: mug
    tvstand: tissuebox
    ottoman: book box cellphone creditcard keychain laptop newspaper pillow remotecontrol
    cart: candle cloth dishsponge handtowel plunger soapbar soapbottle spraybottle tissuebox toiletpaper
""")

# What can be done with an object (all but lamps and furnishings can be picked up).
ABILITIES: dict[str, list[str]] = _lists("""
    cleanable: apple bowl butterknife cloth cup dishsponge egg fork kettle knife ladle lettuce mug pan plate
      pot potato soapbar spatula spoon tomato
    coolable: apple bowl bread cup egg lettuce mug pan plate pot potato tomato winebottle
    heatable: apple bread cup egg mug plate potato tomato
    sliceable: apple bread egg lettuce potato tomato
    toggleable: desklamp floorlamp
""")

FIXED = frozenset({"desklamp", "houseplant", "television"})  # listed, never picked up
OPENABLE = {"fridge": 1.0, "microwave": 1.0, "drawer": 0.85, "cabinet": 0.81, "safe": 0.81}  # chance to have a door
ROOMS = ("kitchen", "living", "bedroom", "bathroom")
