//! The book's reference page: every setting, generated from its declaration.

use crate::settings::{
    AtSettings, BridgeSettings, ControlSettings, DirectionSettings, EngineSettings, Fidelity, FlowSettings,
    ForwarderSettings, HopSettings, HostSettings, LinkSettings, NespSettings, PoliceSettings, RepeatSettings,
    RingSettings, RouterPortSettings, RouterSettings, ScenarioSettings, SlowPathSettings, SourceSettings,
};
use longwire_block::flow::FLOW;
use longwire_block::{Fallback, Param, Settings, Spec};
use longwire_drivers::DRIVERS;
use longwire_link::MEDIA;
use longwire_random::process;
use std::fmt::Write;

/// The page as Markdown. `longwire blocks --markdown` prints it, and a test compares it with the book's.
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings\n\nEvery setting, with its values, its default, and whether it can change in a run.\n\
         `longwire blocks --markdown > docs/book/reference.md` generates this page from the \
         declarations.\n[Scenario files](scenario.md), [Link characteristics](links.md), \
         [Queues](queues.md) and\n[Shared media](media.md) say what the settings do.\n",
    );
    let sections = [
        ScenarioSettings::SPEC,
        RepeatSettings::SPEC,
        EngineSettings::SPEC,
        Fidelity::SPEC,
        NespSettings::SPEC,
        HostSettings::SPEC,
        BridgeSettings::SPEC,
        RouterSettings::SPEC,
        RouterPortSettings::SPEC,
        HopSettings::SPEC,
        FlowSettings::SPEC,
        RingSettings::SPEC,
        PoliceSettings::SPEC,
        SlowPathSettings::SPEC,
        ControlSettings::SPEC,
        ForwarderSettings::SPEC,
        LinkSettings::SPEC,
        DirectionSettings::SPEC,
        SourceSettings::SPEC,
        AtSettings::SPEC,
    ];
    section(&mut page, "Sections", sections.iter());
    section(&mut page, "Port drivers", DRIVERS.iter().map(|driver| &driver.spec));
    section(
        &mut page,
        "Links",
        longwire_link::registry().into_iter().filter(|spec| spec.key != "background"),
    );
    section(
        &mut page,
        "Traffic sources, and background traffic of links",
        process::SPECS.iter().chain([&FLOW]),
    );
    section(&mut page, "Shared media", MEDIA.iter().copied());
    page
}

fn section<'s>(page: &mut String, heading: &str, rows: impl Iterator<Item = &'s Spec>) {
    // Writing to a String can't fail.
    let _ = write!(page, "\n## {heading}\n");
    for spec in rows {
        let kind = if spec.kind == spec.key { String::new() } else { format!(", `{}`", spec.kind) };
        let _ =
            write!(page, "\n### `{}`{kind}\n\n{}\n\nSource: {}.\n\n", spec.key, spec.summary, spec.source);
        if spec.params.is_empty() {
            page.push_str("It has no settings.\n");
            continue;
        }
        page.push_str("| setting | values | default | in a run | meaning |\n|---|---|---|---|---|\n");
        spec.params.iter().for_each(|param| row(page, param));
    }
}

fn row(page: &mut String, param: &Param) {
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
