#!/usr/bin/env python3
"""Checks README.md and docs/: links inside the repository resolve, the README names the commands a
newcomer needs and lists all of the program's, and every `$ samebits …` line in a console block uses commands and options that the
built program knows."""
import argparse
import functools
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
README_NAMES = ("make demo", "make test")


def slug(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def outside_fences(text):
    """(line number, line, language of the block it stands in, or None)."""
    language = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            language = None if language is not None else line.strip()[3:].strip()
        else:
            yield number, line, language


def anchors(path):
    return {slug(l.lstrip("#")) for _, l, lang in outside_fences(path.read_text(encoding="utf-8"))
            if lang is None and l.startswith("#")}


def link_problems(root, path, text):
    for number, line, language in outside_fences(text):
        if language is not None:
            continue
        for match in LINK.finditer(line):
            target, _, anchor = (match[1] or match[2]).partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            goal = (path.parent / target).resolve() if target else path
            where = f"{path.relative_to(root)}:{number}"
            if not goal.exists():
                yield f"{where}: the link {target} leads nowhere"
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
                yield f"{where}: {goal.name} has no heading #{anchor}"


class Program:
    """What the built program says about itself."""

    def __init__(self, path):
        self.path = path

    @functools.lru_cache(maxsize=None)
    def help(self, words):
        run = subprocess.run([str(self.path), *words, "--help"], capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=60)
        return run.stdout + run.stderr

    def subcommands(self, words):
        names, section = set(), ""
        for line in self.help(words).splitlines():
            if line and not line[0].isspace() and line.rstrip().endswith(":"):
                section = line
            match = re.match(r"  ([a-z][\w-]*)(\s|$)", line)
            if match and section.startswith("Subcommands"):
                names.add(match[1])
        return names

    def leaves(self, words=()):
        """Every command that has none below it: "demo", "model new"."""
        below = self.subcommands(words)
        if words and not below:
            return [" ".join(words)]
        return [leaf for name in sorted(below) for leaf in self.leaves(words + (name,))]

    def problem(self, line):
        words, options = (), []
        for word in line.split():
            if word in ("|", ">", "<", "&&", ";", "#", "\\"):
                break
            if word.startswith("--"):
                options.append(word.split("=")[0])
            elif not options and word in self.subcommands(words):
                words += (word,)
            elif not words:
                return f"'{word}' is no subcommand"
        known = self.help(words) + self.help(())
        for option in options:
            if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known):
                return f"samebits {' '.join(words)} has no option {option}"
        return None


def check(root, program=None):
    root = pathlib.Path(root).resolve()
    readme = root / "README.md"
    files = [p for p in [readme, *sorted((root / "docs").rglob("*.md"))] if p.is_file()]
    problems, commands = [], 0
    if not readme.is_file():
        problems.append("README.md: missing")
    for path in files:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root)
        problems += link_problems(root, path, text)
        if path == readme:
            problems += [f"{name}: does not name `{n}`" for n in README_NAMES if n not in text]
            leaves = program.leaves() if program else []
            problems += [f"{name}: does not list `{n}`" for n in leaves if f"`{n}`" not in text]
        for number, line, language in outside_fences(text):
            match = re.match(r"\s*\$ (?:\S*/)?samebits(?:\s+(.*))?$", line)
            if language == "console" and match and program:
                commands += 1
                if what := Program.problem(program, match[1] or "--help"):
                    problems.append(f"{name}:{number}: {what}")
    return problems, f"{len(files)} pages, {commands} command lines"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    args = parser.parse_args()
    program = Program(args.program.resolve()) if args.program.is_file() else None
    if program is None:
        print(f"check docs: SKIPPED the command lines, {args.program} is not built")
    import report
    return report.show("docs", *check(pathlib.Path(__file__).parent.parent, program))


if __name__ == "__main__":
    sys.exit(main())
