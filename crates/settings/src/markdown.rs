//! Rows of settings as a section of a page in Markdown.

use crate::{Fallback, Param, Spec};
use std::fmt::Write;

/// A section with a table for each row: values, defaults, and whether a setting can change in a run.
pub fn markdown<'s>(heading: &str, rows: impl IntoIterator<Item = &'s Spec>) -> String {
    let mut page = format!("\n## {heading}\n");
    for spec in rows {
        let kind = if spec.kind == spec.key { String::new() } else { format!(", `{}`", spec.kind) };
        // Writing to a String can't fail.
        let _ =
            write!(page, "\n### `{}`{kind}\n\n{}\n\nSource: {}.\n\n", spec.key, spec.summary, spec.source);
        if spec.params.is_empty() {
            page.push_str("It has no settings.\n");
            continue;
        }
        page.push_str("| setting | values | default | in a run | meaning |\n|---|---|---|---|---|\n");
        spec.params.iter().for_each(|param| line(&mut page, param));
    }
    page
}

fn line(page: &mut String, param: &Param) {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let default = match param.default {
        Fallback::Required => "required".into(),
        Fallback::Value("") => "none".into(),
        Fallback::Value(value) => format!("`{}`", cell(value)),
        Fallback::Computed(words) => cell(words),
    };
    let live = if param.live { "changes" } else { "fixed" };
    let (name, takes, help) = (param.name, cell(&param.takes()), cell(param.help));
    let _ = writeln!(page, "| `{name}` | {takes} | {default} | {live} | {help} |");
}
