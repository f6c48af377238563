//! Creates a new block: a file in its stage's folder, from a template that compiles, passes its test and
//! shows the calls of that stage.

use anyhow::{Context, Result, bail};
use std::path::Path;

/// A stage of the link: its folder, its enum, the calls to its blocks, and a template.
struct Stage {
    folder: &'static str,
    list: &'static str,
    contract: &'static str,
    template: &'static str,
}

const STAGES: &[Stage] = &[
    Stage {
        folder: "filter",
        list: "Filter",
        contract: "Judge",
        template: include_str!("../templates/filter.rs"),
    },
    Stage {
        folder: "impair",
        list: "Impair",
        contract: "Judge",
        template: include_str!("../templates/impair.rs"),
    },
    Stage {
        folder: "queue",
        list: "Queue",
        contract: "Discipline",
        template: include_str!("../templates/queue.rs"),
    },
    Stage {
        folder: "transmit",
        list: "Transmit",
        contract: "Sender",
        template: include_str!("../templates/transmit.rs"),
    },
    Stage {
        folder: "delay",
        list: "Delay",
        contract: "Travel",
        template: include_str!("../templates/delay.rs"),
    },
];

/// Writes the file, declares it as a module, and prints the row that registers the block.
///
/// # Errors
/// If there is no such stage, the name is invalid for a block, or the file exists.
pub fn block(root: &Path, stage: &str, name: &str) -> Result<()> {
    let Some(stage) = STAGES.iter().find(|s| s.folder == stage) else {
        let known = STAGES.iter().map(|s| s.folder).collect::<Vec<_>>().join(", ");
        bail!("there is no stage {stage}; the stages are {known}");
    };
    if !is_name(name) {
        bail!("a block's name is lower-case words with hyphens, such as gilbert-elliott; not {name}");
    }
    let (module, kind) = (name.replace('-', "_"), type_name(name));
    let folder = format!("crates/link/src/{}", stage.folder);
    let file = format!("{folder}/{module}.rs");
    if root.join(&file).exists() {
        bail!("there is {file} already");
    }
    let list = root.join(&folder).join("mod.rs");
    let listed = std::fs::read_to_string(&list).with_context(|| format!("can't read {folder}/mod.rs"))?;
    std::fs::write(root.join(&file), fill(stage.template, name, &kind))
        .with_context(|| format!("can't write {file}"))?;
    std::fs::write(&list, declare(&listed, &module))
        .with_context(|| format!("can't write {folder}/mod.rs"))?;
    println!("{file} is there, with a block that works; make it yours.");
    println!("Block and {} say what it is asked.", stage.contract);
    println!("To register it, add this line to {} in {folder}/mod.rs, under boxed:\n", stage.list);
    println!("            {kind} = {module}::{kind},");
    Ok(())
}

fn is_name(name: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.split('-').all(word)
}

fn type_name(name: &str) -> String {
    name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

fn fill(template: &str, name: &str, kind: &str) -> String {
    template.replace("Template", kind).replace("template", name)
}

/// Adds `pub mod` for the module, in alphabetical order.
fn declare(list: &str, module: &str) -> String {
    let line = format!("pub mod {module};");
    let mut lines: Vec<&str> = list.lines().collect();
    let declared = |l: &&str| l.starts_with("pub mod ");
    let after = lines.iter().position(|l| declared(l) && **l > *line);
    let end = lines.iter().rposition(declared).map(|i| i + 1);
    lines.insert(after.or(end).unwrap_or(lines.len()), &line);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_with_hyphens() {
        for name in ["loss", "gilbert-elliott", "pie2"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "Loss", "a--b", "-a", "a_b", "2x", "../x", "ä"] {
            assert!(!is_name(name), "{name}");
        }
        assert_eq!(type_name("gilbert-elliott"), "GilbertElliott");
    }

    #[test]
    fn modules_are_declared_in_order() {
        let list = "//! Doc.\n\npub mod constant;\npub mod trace;\n\nuse x;\n";
        assert_eq!(
            declare(list, "jitter"),
            "//! Doc.\n\npub mod constant;\npub mod jitter;\npub mod trace;\n\nuse x;\n"
        );
        assert_eq!(
            declare(list, "wave"),
            "//! Doc.\n\npub mod constant;\npub mod trace;\npub mod wave;\n\nuse x;\n"
        );
    }

    /// A template implements every call without a default in its stage's trait; its file name, type and row
    /// are those of the new block.
    #[test]
    fn templates_match_their_stages() {
        for stage in STAGES {
            let read = |file: &str| {
                let path = format!("{}/../crates/{file}", env!("CARGO_MANIFEST_DIR"));
                std::fs::read_to_string(path).unwrap()
            };
            let list = read(&format!("link/src/{}/mod.rs", stage.folder));
            assert!(
                list.contains(&format!("    {}: {} {{\n", stage.list, stage.contract)),
                "{}",
                stage.folder
            );
            assert!(list.contains("        boxed {\n"), "{}", stage.folder);
            let text = fill(stage.template, "gilbert-elliott", "GilbertElliott");
            assert!(
                text.contains("pub struct GilbertElliott {") && text.contains("kind = \"gilbert-elliott\"")
            );
            assert!(!text.to_lowercase().contains("template"));
            let judge = read("link/src/judge.rs");
            let home = if stage.contract == "Judge" { &judge } else { &list };
            for (contract, home) in [(stage.contract, home), ("Block", &read("block/src/stage.rs"))] {
                let answered = calls(&text, &format!("impl {contract} for GilbertElliott {{\n"));
                let asked = calls(home, &format!("pub trait {contract}: "));
                let open = asked.iter().filter(|(_, _, has_default)| !has_default);
                let missing: Vec<_> =
                    open.filter(|call| !answered.iter().any(|own| own.0 == call.0)).collect();
                assert!(missing.is_empty(), "{}: {missing:?}", stage.folder);
                for (name, returned, _) in &answered {
                    let asked = asked.iter().find(|call| call.0 == *name);
                    assert_eq!(asked.map(|call| &call.1), Some(returned), "{}: {name}", stage.folder);
                }
            }
        }
    }

    /// The calls in the trait or implementation that begins with `head`: name, result, and whether it has a
    /// body.
    fn calls(text: &str, head: &str) -> Vec<(String, String, bool)> {
        let body =
            text.split(head).nth(1).unwrap_or_else(|| panic!("no {head}")).split("\n}\n").next().unwrap();
        let calls = body.split("    fn ").skip(1).map(|call| {
            let (name, rest) = call.split_once('(').unwrap();
            let end = rest.find([';', '{']).unwrap();
            let returned = rest[..end].split("->").nth(1).unwrap_or_default().trim();
            (name.to_owned(), returned.to_owned(), rest[end..].starts_with('{'))
        });
        calls.collect()
    }
}
