"""Prints the training text of the museum's runs, which is the same everywhere and need not be stored."""

WORDS = "the old oak fell to the lot at noon and all the folk ate a tale".split()

state = 1
for _ in range(6000):
    line = []
    for _ in range(8):
        state = (state * 1103515245 + 12345) % 2**31
        line.append(WORDS[state // 65536 % len(WORDS)])
    print(" ".join(line))
