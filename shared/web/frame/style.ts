/** Colours are named once for light and once for dark; a state's colour only repeats what its word says. */
export const style = `:root {
  color-scheme: light dark;
  --ground: #f6f7f7; --sheet: #fff; --text: #1b2427; --soft: #54626a; --line: #dce2e4; --accent: #0f6f67; --on-accent: #fff;
  --blue: #1a5aa8; --amber: #845500; --red: #ad241c; --green: #17693a; --violet: #73399a; --grey: #54626a;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "Roboto Mono", "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #101618; --sheet: #172023; --text: #e3e9eb; --soft: #a0b0b6; --line: #2b383d; --accent: #63cfc2; --on-accent: #06201d;
    --blue: #8fbcf7; --amber: #e9ba62; --red: #f59f97; --green: #82d3a0; --violet: #d2abee; --grey: #a9b8be;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
body { margin: 0; background: var(--ground); color: var(--text); overflow-wrap: anywhere; }
.bar, main, footer, .notice { width: min(72rem, 100%); margin-inline: auto; padding-inline: 1.25rem; }
header { background: var(--sheet); border-bottom: 1px solid var(--line); }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.5rem; padding-block: .5rem; }
.brand { display: flex; align-items: center; gap: .5rem; font-weight: 650; color: var(--text); text-decoration: none; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem; margin: 0; padding: 0; list-style: none; }
nav a { display: block; padding: .3rem .6rem; border-radius: .4rem; color: var(--soft); text-decoration: none; }
nav a:hover { color: var(--text); }
nav a[aria-current] { color: var(--text); background: var(--ground); font-weight: 600; }
.leave { display: flex; align-items: center; gap: .75rem; margin-left: auto; }
.who { color: var(--soft); font-size: .875rem; }
main { padding-block: 1.5rem 2rem; outline: none; }
footer { color: var(--soft); font-size: .8125rem; padding-block: 0 2rem; }
footer p { margin: 0; }

h1 { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .75rem; font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }
h1 code { font-size: 1.25rem; }
h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
p { margin: 0 0 .5rem; }
a { color: var(--accent); text-underline-offset: .15em; text-decoration-thickness: 1px; }
code, pre, textarea[spellcheck=false] { font-family: var(--mono); font-size: .8125rem; }
pre { margin: 0 0 .5rem; padding: .75rem; max-height: 24rem; overflow: auto; white-space: pre-wrap; background: var(--sheet); border: 1px solid var(--line); border-radius: .5rem; }
.lead, .note, .empty, .crumb { color: var(--soft); }
.note { font-size: .8125rem; }
.crumb { margin-bottom: .25rem; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: .5rem; top: .5rem; padding: .5rem 1rem; background: var(--sheet); z-index: 1; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: .25rem; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .75rem; margin: 0; padding: 0; list-style: none; }
.tiles li { --tone: var(--text); background: var(--sheet); border: 1px solid var(--line); border-radius: .6rem; overflow: clip; }
.tiles .calls { background: linear-gradient(to right, var(--tone) 4px, var(--sheet) 4px); }
.tiles a, .tiles div { display: block; height: 100%; padding: .75rem 1rem; color: var(--soft); text-decoration: none; font-size: .875rem; }
.tiles a:hover { color: var(--text); text-decoration: underline; }
.figure { display: block; overflow-wrap: normal; font-size: 1.75rem; line-height: 1.2; font-weight: 600; color: var(--tone); font-variant-numeric: tabular-nums; }

.scroll { overflow-x: auto; background: var(--sheet); border: 1px solid var(--line); border-radius: .6rem; }
table { width: 100%; border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .5rem .75rem; text-align: left; vertical-align: baseline; white-space: nowrap; font-weight: 400; }
thead th { color: var(--soft); font-size: .8125rem; border-bottom: 1px solid var(--line); }
tbody tr + tr > * { border-top: 1px solid var(--line); }
.end { text-align: right; }
.wrap { white-space: normal; min-width: 14rem; overflow-wrap: anywhere; }
tbody tr:hover { background: color-mix(in srgb, var(--accent) 5%, transparent); }

.badge { display: inline-block; padding: .05rem .5rem; border-radius: 1rem; font-size: .8125rem; font-weight: 550; white-space: nowrap; color: var(--tone, var(--grey)); background: color-mix(in srgb, var(--tone, var(--grey)) 11%, transparent); }
.badge, .timeline li { --tone: var(--grey); }
.badge.running, .timeline .running { --tone: var(--blue); }
.badge.waiting, .timeline .waiting, .tiles .waiting.calls { --tone: var(--amber); }
.badge.in_doubt, .timeline .in_doubt, .timeline .unsure, .tiles .in_doubt.calls { --tone: var(--violet); }
.badge.failed, .timeline .failed, .timeline .undone, .tiles .failed.calls { --tone: var(--red); }
.badge.completed, .timeline .completed, .timeline .done { --tone: var(--green); }
.pick { width: 1%; padding-right: 0; }
.several { margin-top: .75rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 1rem 1.5rem; margin: 0; padding: 0; list-style: none; }
.charts li { background: var(--sheet); border: 1px solid var(--line); border-radius: .6rem; padding: .75rem 1rem; }
.charts span { color: var(--soft); font-size: .875rem; }
svg { display: block; width: 100%; height: auto; }
svg rect { fill: var(--accent); }
svg line { stroke: var(--line); }
svg text { fill: var(--text); font-size: 9px; font-variant-numeric: tabular-nums; }
svg .tick { fill: var(--soft); }
.label { display: inline-block; padding: 0 .5rem; border: 1px solid var(--line); border-radius: .3rem; }

.panel { background: var(--sheet); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: .75rem 0; }
.panel form + form { margin-top: .75rem; }
.wrong { border-left: 4px solid var(--red); padding: .5rem .75rem; margin: 0 0 .75rem; background: var(--sheet); border-radius: .3rem; }
.wrong pre { border: 0; padding: 0; margin: 0; background: none; }
.notice { margin-block: 1rem 0; }
.notice::before { content: "✓ "; color: var(--green); font-weight: 700; }
label { display: block; font-size: .875rem; color: var(--soft); margin-bottom: .25rem; }
input, select, textarea, button { font: inherit; color: inherit; max-width: 100%; }
input:not([type=hidden]), select, textarea { background: var(--ground); border: 1px solid color-mix(in srgb, var(--soft) 75%, var(--sheet)); border-radius: .4rem; padding: .4rem .6rem; }
.panel input, textarea { width: min(36rem, 100%); }
textarea { display: block; }
button { padding: .4rem .9rem; border: 1px solid color-mix(in srgb, var(--soft) 75%, var(--sheet)); border-radius: .4rem; background: var(--sheet); cursor: pointer; font-weight: 550; }
button:hover { border-color: var(--accent); }
.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.danger { color: var(--red); border-color: var(--red); }
.quiet { border-color: transparent; background: none; color: var(--soft); font-weight: 400; padding: .3rem .5rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .5rem; margin-top: .75rem; }
.filter { display: flex; flex-wrap: wrap; align-items: end; gap: .75rem; margin-bottom: 1rem; }
.paging { display: flex; gap: 1rem; margin-top: .75rem; }
.login { max-width: 26rem; margin: 8vh auto 0; }
.login input { width: 100%; margin-bottom: .75rem; }
.login .note { margin: 1rem 0 0; }
summary { cursor: pointer; color: var(--soft); width: fit-content; font-size: .875rem; }
.folded { margin-top: .75rem; }
.folded > p { margin: .5rem 0; color: var(--soft); font-size: .875rem; }

.timeline { margin: 0; padding: 0; list-style: none; }
.timeline li { display: grid; grid-template-columns: 7.5rem 1fr; gap: 0 1.75rem; position: relative; padding-bottom: .6rem; font-size: .9375rem; }
.timeline time { text-align: right; color: var(--soft); font-size: .8125rem; line-height: 1.75; font-variant-numeric: tabular-nums; }
.timeline .day { display: block; font-weight: 600; }
.timeline p { margin: 0; }
.timeline li > div { position: relative; min-width: 0; }
.timeline li > div::before { content: ""; position: absolute; left: -1.2rem; top: .5rem; width: .6rem; height: .6rem; border-radius: 50%; background: var(--tone); z-index: 1; }
.timeline .call > div::before { background: var(--ground); border: 2px solid var(--tone); }
.timeline li:not(:last-child) > div::after { content: ""; position: absolute; left: -.93rem; top: 1rem; bottom: -1.1rem; width: 1px; background: var(--line); }
.kind, .word { color: var(--soft); }
.reason { color: var(--red); font-size: .875rem; }
.head { display: flex; flex-wrap: wrap; align-items: baseline; gap: .25rem .75rem; }
.head > * { margin-bottom: .5rem; }
.copy { display: none; font-size: .8125rem; padding: .1rem .5rem; border-color: var(--line); }
.scripted .copy { display: inline-block; }
.waterfall, .legend, .log { margin: 0; padding: 0; list-style: none; }
.waterfall { background: var(--sheet); border: 1px solid var(--line); border-radius: .6rem; padding: .5rem .75rem; }
.waterfall li { display: grid; grid-template-columns: 13rem 1fr 8.5rem; gap: 0 .75rem; align-items: center; font-size: .8125rem; line-height: 1.6; }
.waterfall li:not(.run) .what { padding-left: .9rem; }
.waterfall .what { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.waterfall .run .what { font-weight: 550; }
.waterfall .took { text-align: right; font-variant-numeric: tabular-nums; color: var(--soft); position: relative; }
.waterfall li, .legend li { --tone: var(--grey); }
.waterfall .run, .legend .run { --tone: color-mix(in srgb, var(--blue) 45%, var(--sheet)); }
.waterfall .step, .legend .step { --tone: var(--accent); }
.waterfall .turn, .legend .turn { --tone: var(--violet); }
.waterfall .effect, .legend .effect { --tone: var(--green); }
.waterfall .wait, .legend .wait { --tone: color-mix(in srgb, var(--amber) 55%, var(--sheet)); }
.waterfall .undone:not(.wait) { --tone: var(--red); }
.bars { display: block; width: 100%; height: 16px; overflow: hidden; }
.bars rect { fill: var(--tone); }
.bars .queue { fill: var(--line); }
.bars .gap { fill: none; stroke: var(--red); stroke-dasharray: 3 3; }
.legend { display: flex; flex-wrap: wrap; gap: .15rem 1rem; margin-bottom: .4rem; font-size: .8125rem; color: var(--soft); }
.legend li::before { content: ""; display: inline-block; width: .8rem; height: .6rem; margin-right: .4rem; border-radius: 2px; background: var(--tone); }
.legend .lost::before { background: none; border: 1px dashed var(--red); }
.log { padding: .5rem .75rem; max-height: 24rem; font-family: var(--mono); font-size: .8125rem; }
.log li { white-space: pre-wrap; }
.log time { color: var(--soft); }
.log .warn strong { color: var(--amber); }
.log .error strong { color: var(--red); }
.timeline details { margin-top: .25rem; }
.timeline pre { margin-top: .25rem; max-height: 16rem; }
[data-words]:empty { display: none; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .75rem 1.5rem; margin: 0 0 1rem; }
.facts dt { color: var(--soft); font-size: .8125rem; }
.facts dd { margin: 0; }
.report { width: 100%; height: 80vh; border: 1px solid var(--line); border-radius: .6rem; background: #fff; }

@media (max-width: 40rem) {
  .bar, main, footer, .notice { padding-inline: .9rem; }
  nav { order: 1; flex-basis: 100%; margin-inline: -.45rem; }
  nav ul { gap: 0; }
  nav a { padding: .3rem .45rem; font-size: .9375rem; }
  .figure { font-size: 1.5rem; }
  /* A row becomes a block: what it is about, and below it the rest, none of it out of sight. */
  .scroll thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .scroll table, .scroll tbody { display: block; }
  .scroll tr { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem .75rem; padding: .6rem .75rem; }
  .scroll tbody tr + tr { border-top: 1px solid var(--line); }
  .scroll tbody tr > * { border: 0; padding: 0; white-space: normal; width: auto; min-width: 0; }
  .scroll tbody th { flex: 1 0 80%; }
  .scroll .wrap { flex: 1 0 100%; }
  .scroll .none { display: none; }
  .scroll [data-label]::after { content: " " attr(data-label); color: var(--soft); font-size: .8125rem; }
  .facts { grid-template-columns: 1fr 1fr; }
  .waterfall li { grid-template-columns: 1fr auto; padding-block: .2rem; }
  .waterfall .bars { grid-row: 2; grid-column: 1 / 3; }
  .timeline li { grid-template-columns: 1fr; padding-left: 1.4rem; }
  .timeline time { text-align: left; }
  .timeline .day { display: inline; }
  .timeline li > div::before { top: -1.1rem; }
  .timeline li:not(:last-child) > div::after { top: -.6rem; bottom: -1.6rem; }
}
@media (prefers-reduced-motion: no-preference) { a, button { transition: color .1s, border-color .1s; } }
`;
