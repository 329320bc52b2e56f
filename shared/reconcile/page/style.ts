/** Of a report's page, which must look well on a screen, a phone and paper, by light and dark, with nothing from elsewhere. */
export const STYLE = `
:root { color-scheme: light dark; --line: #d7dbe2; --soft: #5b6472; --paper: #fff; --card: #f6f7f9; --ink: #1a1f27; --ok: #1a7f4b; --look: #845500; --broken: #b3261e; --bar: #4a6fa5; }
@media (prefers-color-scheme: dark) { :root { --line: #343b46; --soft: #a3adba; --paper: #14181e; --card: #1b2028; --ink: #e8ecf1; --ok: #55c98e; --look: #e9ba62; --broken: #ff8a80; --bar: #7fa6e0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1rem; color: var(--soft); font-weight: 600; margin: 0; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.verdict { font-size: 1.6rem; line-height: 1.3; font-weight: 650; margin: .3rem 0 1rem; color: var(--ok); }
.verdict.look { color: var(--look); }
.verdict.broken { color: var(--broken); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .8rem; padding: 0; list-style: none; }
.figures li { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .7rem .9rem; }
.figures span { display: block; color: var(--soft); font-size: .87rem; }
.figures strong { display: block; font-size: 1.7rem; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1rem 1.5rem; padding: 0; list-style: none; }
.charts span { color: var(--soft); }
svg { display: block; width: 100%; max-width: 28rem; height: auto; }
svg rect { fill: var(--bar); }
svg line { stroke: var(--line); }
svg text { fill: var(--ink); font: 9px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
svg text.tick { fill: var(--soft); }
section p { margin: .2rem 0; }
h3, p, li { overflow-wrap: anywhere; }
.table { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.n { text-align: right; white-space: nowrap; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 400; min-width: 14rem; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } .table { overflow: visible; } h2 { break-after: avoid; } tr, .charts li { break-inside: avoid; } }
`;
