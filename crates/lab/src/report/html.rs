//! The report as one file.

use super::svg::escaped;
use super::tables::{Mark, Table, tables};
use super::{charts, warnings};
use crate::results::Experiment;
use std::fmt::Write;

const STYLE: &str = "
:root{--back:#fff;--text:#1b1f24;--faint:#57606a;--line:#d0d7de;--bad:#b42318;--good:#0b6bcb;
--worse:#8a6100;--c0:#0b6bcb;--c1:#c2410c;--c2:#15803d;--c3:#7e22ce;--c4:#b91c1c;--c5:#4b5563}
@media (prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--faint:#9198a1;
--line:#30363d;--bad:#ff7b72;--good:#6cb6ff;--worse:#e3b341;--c0:#6cb6ff;--c1:#ffa657;
--c2:#7ee787;--c3:#d2a8ff;--c4:#ff7b72;--c5:#b1bac4}}
*{box-sizing:border-box}
body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif;margin:0 auto;
max-width:980px;padding:24px 20px}
h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:32px 0 8px}
p.sub,p.none{color:var(--faint);margin:0 0 16px}
.warn{border-left:4px solid var(--bad);padding:8px 14px;margin:16px 0;color:var(--bad)}
.verified{border-left:4px solid var(--c2);padding:8px 14px;margin:16px 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;min-width:100%}
th,td{border-bottom:1px solid var(--line);padding:4px 10px;text-align:right;white-space:nowrap}
td{max-width:340px;overflow-wrap:anywhere}td.long{white-space:normal}
th:first-child,td:first-child{text-align:left}th{color:var(--faint);font-weight:600}
td.better{color:var(--good);font-weight:600}td.worse{color:var(--worse);font-weight:600}
td.bad{color:var(--bad);font-weight:700}
svg{display:block;width:100%;height:auto;margin:18px 0}
svg text{fill:var(--text);font:12px system-ui,sans-serif}
svg .title{font-weight:600;font-size:13px}svg .tick,svg .label{fill:var(--faint)}
svg .grid{stroke:var(--line);stroke-width:1}svg .axis{stroke:var(--faint);stroke-width:1}
svg .line{fill:none;stroke-width:2}svg .dashed{stroke-width:1;stroke-dasharray:4 3;opacity:.75}
svg circle.line{fill:var(--back)}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}
.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}
pre{background:color-mix(in srgb,var(--line) 35%,transparent);padding:12px;overflow-x:auto;
font-size:13px}
";

/// Longer texts are broken into lines.
const LONG_CHARACTERS: usize = 40;

/// The whole page.
pub fn html(experiment: &Experiment) -> String {
    let names: Vec<&str> = experiment.servers.iter().map(|server| server.name.as_str()).collect();
    let title = format!("{}: {}", names.join(" and "), experiment.workload);
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{0}</title><style>{STYLE}</style>\
         </head><body><h1>{0}</h1>",
        escaped(&title)
    );
    for server in &experiment.servers {
        let _infallible = write!(
            out,
            "<p class=\"sub\">{}: {}</p>",
            escaped(&server.name),
            escaped(&server.version)
        );
    }
    put_warnings(&mut out, experiment);
    let mut tables = tables(experiment).into_iter();
    for table in tables.by_ref().take_while(|table| table.title != "Operations (first run of each)")
    {
        put_table(&mut out, &table);
    }
    out.push_str("<h2>Charts</h2>");
    charts::charts(experiment).iter().for_each(|chart| out.push_str(&chart.svg()));
    tables.for_each(|table| put_table(&mut out, &table));
    put_reproduction(&mut out, experiment);
    out.push_str("</body></html>\n");
    out
}

fn put_warnings(out: &mut String, experiment: &Experiment) {
    for warning in warnings(experiment) {
        let _infallible = write!(out, "<p class=\"warn\">{}</p>", escaped(&warning));
    }
    let verified = experiment.servers.iter().filter(|s| s.violations.as_deref() == Some(&[]));
    for server in verified {
        let name = escaped(&server.name);
        let _infallible = write!(
            out,
            "<p class=\"verified\">{name}: VERIFIED: after the runs its data keep all rules of the \
             workload.</p>"
        );
    }
}

fn put_table(out: &mut String, table: &Table) {
    let _infallible =
        write!(out, "<h2>{}</h2><div class=\"scroll\"><table><tr>", escaped(table.title));
    for word in &table.head {
        let _infallible = write!(out, "<th>{}</th>", escaped(word));
    }
    out.push_str("</tr>");
    for row in &table.rows {
        out.push_str("<tr>");
        for cell in row {
            let class = match cell.mark {
                Mark::Plain => "",
                Mark::Better => "better",
                Mark::Worse => "worse",
                Mark::Bad => "bad",
            };
            let long = if cell.text.len() > LONG_CHARACTERS { " long" } else { "" };
            let text = escaped(&cell.text);
            let _infallible = write!(out, "<td class=\"{class}{long}\">{text}</td>");
        }
        out.push_str("</tr>");
    }
    out.push_str("</table></div>");
}

fn put_reproduction(out: &mut String, experiment: &Experiment) {
    let machine: Vec<String> =
        experiment.machine.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let _infallible = write!(
        out,
        "<h2>How to reproduce</h2><pre>{}</pre><p class=\"sub\">{}. Seed {}. All figures are in \
         run.json beside this file.</p>",
        escaped(&experiment.command.join(" ")),
        escaped(&machine.join("; ")),
        experiment.seed
    );
}
