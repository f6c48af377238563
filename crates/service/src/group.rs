//! Groups of this machine, by name.

use anyhow::Context;
use std::fs;

/// The number of a group, by name or number.
///
/// # Errors
/// If there is no such group.
pub fn group_id(group: &str) -> anyhow::Result<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let file = "/etc/group";
    let text = fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
    find(&text, group).with_context(|| {
        format!("there is no group \"{group}\" in {file}; make it (groupadd {group}), or give its number")
    })
}

/// The number of a group in the text of group(5): name, password, number, members.
fn find(text: &str, group: &str) -> Option<u32> {
    let mut lines = text.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_numbers() {
        let text = "root:x:0:\nadm:x:4:ann,bob\nbroken\nlongwire:x:998:\n";
        assert_eq!((find(text, "longwire"), find(text, "adm")), (Some(998), Some(4)));
        assert_eq!((find(text, "long"), find(text, "broken")), (None, None));
        assert_eq!(group_id("17").unwrap(), 17);
    }
}
