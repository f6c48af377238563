//! Begins a new block or port driver: files made from templates that compile, pass their test and show the
//! requirements.

use anyhow::{Context, Result, bail};
use std::path::Path;

/// A stage of the link: its folder, its enum, the calls to its blocks, and a template.
struct Stage {
    folder: &'static str,
    list: &'static str,
    contract: &'static str,
    template: &'static str,
}

const STAGES: [Stage; 5] = [
    stage("filter", "Filter", "Judge", include_str!("../templates/filter.rs")),
    stage("impair", "Impair", "Judge", include_str!("../templates/impair.rs")),
    stage("queue", "Queue", "Discipline", include_str!("../templates/queue.rs")),
    stage("transmit", "Transmit", "Sender", include_str!("../templates/transmit.rs")),
    stage("delay", "Delay", "Travel", include_str!("../templates/delay.rs")),
];

const fn stage(
    folder: &'static str,
    list: &'static str,
    contract: &'static str,
    template: &'static str,
) -> Stage {
    Stage { folder, list, contract, template }
}

/// The templates of a driver: its description, and its code.
const DRIVER: [&str; 2] = [include_str!("../templates/driver.rs"), include_str!("../templates/port.rs")];

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
    let file = write(root, (&folder, "mod.rs"), &module, &fill(stage.template, name, &kind))?;
    println!("{file} is there, with a block that works; make it yours.");
    println!("Block and {} say what it is asked.", stage.contract);
    println!("To register it, add this line to {} in {folder}/mod.rs, under boxed:\n", stage.list);
    println!("            {kind} = {module}::{kind},");
    Ok(())
}

/// Writes a driver's description and its code, declares both as modules, and prints the rows that register
/// them.
///
/// # Errors
/// If the name is invalid for a driver, or a file exists already.
pub fn driver(root: &Path, name: &str) -> Result<()> {
    let words = name.replace('_', "-");
    if name.contains('-') || !is_name(&words) {
        bail!("a driver's name is lower-case words with underscores, such as af_packet; not {name}");
    }
    let kind = type_name(&words);
    let [described, code] = DRIVER;
    let file = write(root, ("crates/drivers/src", "lib.rs"), name, &fill(described, name, &kind))?;
    println!(
        "{file} says what the driver is. To register it, add this line to DRIVERS in \
         crates/drivers/src/lib.rs:\n"
    );
    println!("    &{name}::DRIVER,\n");
    let file = write(root, ("crates/port/src/driver", "mod.rs"), name, &fill(code, name, &kind))?;
    println!("{file} opens it. Add this line to OPENERS in crates/port/src/driver/mod.rs:\n");
    println!("    (&longwire_drivers::{name}::DRIVER, &{name}::Opener),");
    Ok(())
}

/// Writes a module's file beside the one that lists the folder's modules, and declares it there. Returns the
/// file's name.
fn write(root: &Path, (folder, list): (&str, &str), module: &str, text: &str) -> Result<String> {
    let file = format!("{folder}/{module}.rs");
    if root.join(&file).exists() || root.join(folder).join(module).exists() {
        bail!("there is {file} already");
    }
    let list = format!("{folder}/{list}");
    let listed = std::fs::read_to_string(root.join(&list)).with_context(|| format!("can't read {list}"))?;
    std::fs::write(root.join(&file), text).with_context(|| format!("can't write {file}"))?;
    std::fs::write(root.join(&list), declare(&listed, module))
        .with_context(|| format!("can't write {list}"))?;
    Ok(file)
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

    #[test]
    fn a_driver_has_its_name_in_both_files() {
        let [described, code] = DRIVER.map(|template| fill(template, "af_test", "AfTest"));
        assert!(described.contains("kind = \"af_test\"") && described.contains("prices!(\"af_test\""));
        assert!(code.contains("impl Port for AfTest {") && code.contains("impl Open for Opener {"));
        assert!(!(described + &code).to_lowercase().contains("template"));
        let root = std::env::temp_dir().join(format!("longwire-new-{}", std::process::id()));
        for (folder, list) in [("crates/drivers/src", "lib.rs"), ("crates/port/src/driver", "mod.rs")] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join(list), "pub mod tap;\n").unwrap();
        }
        driver(&root, "af_test").unwrap();
        let again = driver(&root, "af_test").unwrap_err().to_string();
        let wrong = driver(&root, "af-test").unwrap_err().to_string();
        let listed = std::fs::read_to_string(root.join("crates/port/src/driver/mod.rs")).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        assert!(again.contains("already") && wrong.contains("underscores"), "{again}, {wrong}");
        assert_eq!(listed, "pub mod af_test;\npub mod tap;\n");
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
