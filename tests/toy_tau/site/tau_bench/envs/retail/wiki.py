WIKI = "Find out who calls. Ask before you change anything."
