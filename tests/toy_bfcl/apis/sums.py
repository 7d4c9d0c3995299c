"""An API without state."""


class SumAPI:
    def add(self, a, b):
        return {"result": a + b}

    def power(self, base, exponent):
        return {"result": base**exponent}
