"""How every check reports: one line per problem, then one line that says whether it passed."""


def show(name, problems, scope):
    for problem in problems:
        print(problem)
    print(f"check {name}: " + (f"FAILED, {len(problems)} problems" if problems else f"ok, {scope}"))
    return 1 if problems else 0
