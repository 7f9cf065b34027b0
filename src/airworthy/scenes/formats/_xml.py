"""Writing XML. Nothing here, or anywhere in this package, reads it."""

from __future__ import annotations

import html
import re

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Element:
    """An element with attributes, and text or children."""

    def __init__(self, tag: str, text: str = "", **attributes: str) -> None:
        self.tag = tag
        self.text = text
        self.attributes = attributes
        self.children: list[Element] = []

    def add(self, tag: str, text: str = "", **attributes: str) -> Element:
        """Append a child and return it."""
        child = Element(tag, text, **attributes)
        self.children.append(child)
        return child

    def lines(self, indent: str = "") -> list[str]:
        """The element as lines of text."""
        head = "".join([self.tag, *(f' {name}="{escaped(value)}"' for name, value in self.attributes.items())])
        if not self.children:
            return [f"{indent}<{head}>{escaped(self.text)}</{self.tag}>" if self.text else f"{indent}<{head}/>"]
        inner = [line for child in self.children for line in child.lines(indent + "  ")]
        return [f"{indent}<{head}>", *inner, f"{indent}</{self.tag}>"]

    def document(self) -> str:
        """The whole document."""
        return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', *self.lines()]) + "\n"


def escaped(text: str) -> str:
    """Text that XML can hold."""
    return html.escape(_FORBIDDEN.sub("?", text), quote=True)


def numbers(values: object) -> str:
    """Numbers with blanks between them; nine digits keep every float32."""
    return " ".join(f"{value:.9g}" for value in values)  # type: ignore[attr-defined]


def identifier(text: str) -> str:
    """A name that XML takes as an id."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", text)
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
