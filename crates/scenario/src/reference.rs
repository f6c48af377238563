//! The book's reference page: every setting, generated from its declaration.

use crate::settings::{
    AtSettings, BridgeSettings, ControlSettings, DirectionSettings, EngineSettings, Fidelity, FlowSettings,
    ForwarderSettings, HopSettings, HostSettings, LinkSettings, NespSettings, PoliceSettings, RepeatSettings,
    RingSettings, RouterPortSettings, RouterSettings, ScenarioSettings, SlowPathSettings, SourceSettings,
};
use longwire_block::Settings;
use longwire_block::flow::FLOW;
use longwire_drivers::DRIVERS;
use longwire_link::MEDIA;
use longwire_random::process;
use longwire_settings::markdown;

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
    let links = longwire_link::registry().into_iter().filter(|spec| spec.key != "background");
    let sources = process::SPECS.iter().chain([&FLOW]);
    page += &markdown("Sections", &sections);
    page += &markdown("Port drivers", DRIVERS.iter().map(|driver| &driver.spec));
    page += &markdown("Links", links);
    page += &markdown("Traffic sources, and background traffic of links", sources);
    page + &markdown("Shared media", MEDIA.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_settings_of_links_sources_and_media_are_said_to_change_in_a_run() {
        let links = longwire_link::registry();
        let all = links.into_iter().chain(process::SPECS).chain([&FLOW]).chain(MEDIA.iter().copied());
        let fixed = all.filter(|spec| !spec.params.iter().all(|param| param.live));
        let fixed: Vec<_> = fixed.map(|spec| (spec.key, spec.kind)).collect();
        assert!(fixed.is_empty(), "{fixed:?}");
    }
}
