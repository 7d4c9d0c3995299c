"""ALFWorld: an engine of our own, the real one beside it, a game generator and a scripted expert."""
