"""The style sheet of the page that `focus show --html` writes."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """\
:root {
  color-scheme: light dark;
  --paper: #fbfaf8; --card: #ffffff; --ink: #22242a; --soft: #6b6f78; --line: #e2e0db; --edge: #d5d2ca;
  --c1: #fff0c2; --c2: #ffd48a; --c3: #ffab66; --c4: #f2795a; --on4: #2a0b04; --mark: #0b6bcb; --code: #f3f1ec;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16171a; --card: #1e2024; --ink: #e4e4e2; --soft: #9b9fa8; --line: #32353b; --edge: #4a4e57;
    --c1: #453a17; --c2: #6b4d14; --c3: #96501a; --c4: #c2492a; --on4: #fff3ee; --mark: #6fb1f5; --code: #26292e;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
header { position: sticky; top: 0; z-index: 1; background: var(--paper); border-bottom: 1px solid var(--line);
  padding: .6rem 1.25rem; }
header > div { max-width: 57.5rem; margin: 0 auto; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem;
  align-items: baseline; }
h1 { font-size: 1.05rem; margin: 0; }
h2 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .87rem; }
.legend { display: flex; flex-wrap: wrap; gap: .35rem; align-items: center; }
.legend b { font-weight: 400; white-space: nowrap; padding: 0 .45em; border-radius: 3px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.1rem;
  margin: 1rem 0; }
section > .top { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; margin-bottom: .7rem; }
.warn { border-left: 3px solid var(--c4); padding: .15rem .7rem; margin: .6rem 0; }
.tokens { font: 14px/1.85 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; margin: 0; }
.tokens span { box-shadow: inset 1px 0 0 var(--edge); padding: .14em 1px .14em 2px; unicode-bidi: isolate; }
.tokens span:hover { outline: 2px solid var(--mark); border-radius: 2px; }
.tokens i, td i { color: var(--soft); font-style: normal; opacity: .75; }
.tokens sup { color: var(--soft); font-size: .65em; line-height: 0; }
.p1, .p2, .p3 { color: var(--ink); }
.p1 { background: var(--c1); } .p2 { background: var(--c2); } .p3 { background: var(--c3); }
.p4 { background: var(--c4); color: var(--on4); font-weight: 600; }
.prompt { max-height: 24rem; overflow: auto; }
details { margin-top: .7rem; } summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
details[open] > summary { margin-bottom: .5rem; }
table { border-collapse: collapse; font-size: .87rem; margin-top: .7rem; display: block; overflow-x: auto; }
th { text-align: left; font-weight: 500; color: var(--soft); }
th, td { white-space: nowrap; padding: .15rem .9rem .15rem 0; border-bottom: 1px solid var(--line); }
td.n { font-variant-numeric: tabular-nums; }
td code { white-space: pre; padding: 0 2px; }
code, pre { font: 13px/1.5 ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; }
pre { background: var(--code); border-radius: 5px; padding: .6rem .8rem; margin: .6rem 0 0; white-space: pre-wrap;
  overflow-wrap: anywhere; }
"""
"""Light and dark, one hue from pale to strong, no resource from elsewhere."""
