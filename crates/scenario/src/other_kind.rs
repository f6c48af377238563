//! Files of Longwire that are no scenarios, given in the place of one.

use std::ops::Range;
use toml::de::DeTable;

/// The key at the top level of a file that shows that it is no scenario, what it is, and the command for it.
pub(crate) fn other_kind(root: &DeTable<'_>, file: &str) -> Option<(Range<usize>, &'static str, String)> {
    if ["host", "port", "link"].iter().any(|section| root.contains_key(*section)) {
        return None;
    }
    root.iter().find_map(|(key, _)| {
        let (kind, command) = match key.get_ref().as_ref() {
            "axes" | "scenario" => ("a sweep", format!("longwire sweep run {file}")),
            "walker" | "tle" | "station" => {
                ("a request for a constellation", format!("longwire constellation {file} --output FOLDER"))
            }
            "machine" => ("a list of machines", format!("longwire partition SCENARIO --machines {file}")),
            _ => return None,
        };
        Some((key.span(), kind, command))
    })
}
