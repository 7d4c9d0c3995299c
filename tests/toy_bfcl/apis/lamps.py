"""Lamps that can be lit. In a long context a lamp of the module's own is handed out: a trap."""

SPARE = {"lit": False, "level": 3}


class LampAPI:
    def __init__(self):
        self._description = "lamps"
        self.lamps = {}

    def _load_scenario(self, scenario, long_context=False):
        self.lamps = {name: {"lit": lit, "level": 5} for name, lit in scenario.get("lamps", {}).items()}
        if long_context:
            self.lamps["spare"] = SPARE

    def list_lamps(self):
        return {"lamps": sorted(self.lamps)}

    def light(self, lamp, lit=True):
        if lamp not in self.lamps:
            return {"error": f"no lamp {lamp}"}
        self.lamps[lamp]["lit"] = lit
        return None

    def dim(self, lamp, level):
        self.lamps[lamp]["level"] = level - 0  # a TypeError for what is no number
        return {"lamp": lamp, "level": level}

    def label(self, lamp, tags):
        self.lamps[lamp]["tags"] = tags
        return ", ".join(tags)

    def burn(self):  # not documented, so it cannot be called
        self.lamps.clear()
