//! No circular references between the files of a crate, except between a parent and its descendants.
//!
//! A file refers to another by a path to one of its items, through any number of re-exports. Tests are
//! ignored.

use super::paths::{Path, UsedNames, read};
use super::{File, Finding};
use std::collections::{BTreeMap, BTreeSet};

const RULE: &str = "no circles between files";
/// Most re-exports followed for one name, so that mutual re-exports end.
const MOST_STEPS: usize = 16;

/// A module's path from the crate's root.
type Module = Vec<String>;
/// For each file, the first path that refers to each other file.
type Edges<'k> = BTreeMap<&'k Module, BTreeMap<&'k Module, &'k Path>>;

/// The files of a crate by their modules, without tests: their paths, and the names used in them.
struct Crate<'f>(BTreeMap<Module, (&'f str, UsedNames)>);

/// Checks every crate.
pub fn check(files: &[File], findings: &mut Vec<Finding>) {
    let root = |file: &File| {
        let name = file.path.strip_suffix("src/lib.rs").or_else(|| file.path.strip_suffix("src/main.rs"));
        name.map(|folder| format!("{folder}src/"))
    };
    for folder in files.iter().filter_map(root).collect::<BTreeSet<_>>() {
        let whole = Crate::read(&folder, files);
        whole.check_globs(findings);
        let edges = whole.edges();
        findings.extend(circles(&edges).iter().map(|circle| whole.finding(circle, &edges)));
    }
}

impl<'f> Crate<'f> {
    /// The crate whose sources are in this folder.
    fn read(folder: &str, files: &'f [File]) -> Self {
        let mut all = BTreeMap::new();
        let mut tests: Vec<Module> = Vec::new();
        for file in files {
            let Some(name) = file.path.strip_prefix(folder).and_then(|name| name.strip_suffix(".rs")) else {
                continue;
            };
            let mut module: Module = name.split('/').map(str::to_owned).collect();
            if module[0] == "bin" {
                continue;
            }
            if matches!(name, "lib" | "main") || name.ends_with("/mod") {
                module.pop();
            }
            let named = read(&module, &file.text);
            tests.extend(named.tests.iter().map(|name| below(&module, name)));
            // Of a crate with a library and a program, the library is kept: it comes first.
            all.entry(module).or_insert((file.path.as_str(), named));
        }
        all.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self(all)
    }

    /// Globs hide which files are meant, so they are not allowed.
    fn check_globs(&self, findings: &mut Vec<Finding>) {
        for (module, (file, named)) in &self.0 {
            let of_module = |glob: &&Path| self.follow(glob, 0).1.is_some_and(|other| other != module);
            for glob in named.globs.iter().filter(of_module) {
                let fix =
                    format!("name what is used instead of {}::*, so that it can be followed", glob.text);
                findings.push(Finding::new(file, glob.line, RULE, fix));
            }
        }
    }

    /// References between files, except between a parent and its descendants.
    fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for (module, (_, named)) in &self.0 {
            let imports = named.imports.iter().map(|(_, path)| path);
            for path in imports.chain(&named.globs).chain(&named.paths) {
                for other in self.follow(path, 0).0 {
                    if !module.starts_with(other) && !other.starts_with(module) {
                        edges.entry(module).or_default().entry(other).or_insert(path);
                    }
                }
            }
        }
        edges
    }

    /// The files that a path leads through, including those that only re-export; and the file that the path
    /// itself denotes, if any.
    fn follow(&self, path: &Path, steps: usize) -> (Vec<&Module>, Option<&Module>) {
        let mut at = path.from.clone();
        for (index, word) in path.words.iter().enumerate() {
            let next = below(&at, word);
            if self.0.contains_key(&next) {
                at = next;
                continue;
            }
            let file = self.file_of(&at);
            // An unknown name may belong to the file itself or to another crate.
            let mut through = if index > 0 || !path.is_bare { vec![file] } else { Vec::new() };
            let mut module = None;
            let imports = self.0[file].1.imports.iter().filter(|(name, _)| name == word);
            for (_, import) in imports.filter(|_| steps < MOST_STEPS) {
                // `use serde::…` does not lead to a local item named serde.
                let is_self = import.is_bare && import.words[0] == *word;
                if is_self && !self.0.contains_key(&below(&import.from, word)) {
                    continue;
                }
                let words = import.words.iter().chain(&path.words[index + 1..]).cloned().collect();
                let (more, leads) = self.follow(&Path { words, ..import.clone() }, steps + 1);
                through.extend(more);
                module = leads;
            }
            return (through, module);
        }
        let file = self.file_of(&at);
        (vec![file], (*file == at).then_some(file))
    }

    /// The file that contains a module.
    fn file_of(&self, module: &[String]) -> &Module {
        let ways = (0..=module.len()).rev().map(|length| &module[..length]);
        let known = ways.filter_map(|way| self.0.get_key_value(way)).next();
        known.map(|(module, _)| module).expect("a crate has a root")
    }

    fn finding(&self, circle: &[&Module], edges: &Edges<'_>) -> Finding {
        let file = |module: &Module| self.0[module].0;
        let within = |module| edges[module].iter().find(|(other, _)| circle.contains(other));
        let links: Vec<(&str, usize, String)> = circle
            .iter()
            .filter_map(|module| {
                let (other, path) = within(module)?;
                Some((file(module), path.line, format!("{} by {}", file(other), path.text)))
            })
            .collect();
        let named: Vec<String> =
            links.iter().map(|(file, line, what)| format!("{file}:{line} names {what}")).collect();
        let fix = format!("move what makes the circle to a file below both: {}", named.join(", "));
        Finding::new(links[0].0, links[0].1, RULE, fix)
    }
}

/// The submodule of this name.
fn below(module: &[String], name: &str) -> Module {
    module.iter().map(String::as_str).chain([name]).map(str::to_owned).collect()
}

/// Sets of files that refer to each other in a circle.
fn circles<'k>(edges: &Edges<'k>) -> Vec<Vec<&'k Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        edges.keys().map(|module| (*module, reached(module, edges))).collect();
    let leads = |from: &Module, to: &Module| reached.get(from).is_some_and(|others| others.contains(to));
    let mut circles: Vec<Vec<&Module>> = Vec::new();
    for (module, others) in &reached {
        if leads(module, module) && !circles.iter().any(|circle| circle.contains(module)) {
            circles.push(others.iter().copied().filter(|other| leads(other, module)).collect());
        }
    }
    circles
}

/// All files reachable from one.
fn reached<'k>(from: &'k Module, edges: &Edges<'k>) -> BTreeSet<&'k Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        let new = edges.get(module).into_iter().flat_map(|others| others.keys());
        next.extend(new.filter(|other| reached.insert(**other)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    /// The findings for a crate of these files, with their texts.
    fn found(files: &[(&str, &str)]) -> Vec<(String, usize, String)> {
        let files: Vec<File> =
            files.iter().map(|(name, text)| file(&format!("crates/x/src/{name}"), text)).collect();
        let mut findings = Vec::new();
        check(&files, &mut findings);
        findings.into_iter().map(|finding| (finding.file, finding.line, finding.fix)).collect()
    }

    /// The files of each circle.
    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let names = |fix: &str| {
            let each = fix.split(": ").nth(1).unwrap_or("").split(", ");
            each.map(|one| one.split(':').next().unwrap_or("").replace("crates/x/src/", "")).collect()
        };
        found(files).iter().map(|(_, _, fix)| names(fix)).collect()
    }

    #[test]
    fn a_circle_is_named_with_what_makes_it() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "//! A.\n\nuse crate::b::{self, Two};\n"),
            ("b.rs", "pub struct Two;\nfn f() { super::a::g(); }\n"),
        ];
        let fix = "move what makes the circle to a file below both: crates/x/src/a.rs:3 names \
                   crates/x/src/b.rs by crate::b, crates/x/src/b.rs:2 names crates/x/src/a.rs by super::a::g";
        assert_eq!(found(&files), [("crates/x/src/a.rs".to_owned(), 3, fix.to_owned())]);
    }

    #[test]
    fn what_leads_one_way_is_none() {
        let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::One;\npub use c::Three;\n");
        let (a, b) = (("a.rs", "use crate::b::Two;\n"), ("b.rs", "use crate::c::Three;\n"));
        assert_eq!(found(&[lib, a, b, ("c.rs", "pub struct Three;\n")]), []);
        assert_eq!(circles_of(&[lib, a, b, ("c.rs", "use crate::a::One;\n")]), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn parents_and_what_is_below_may_name_each_other() {
        let files = [
            ("lib.rs", "mod a;\npub use a::One;\n"),
            ("a.rs", "mod b;\nuse b::Two;\n"),
            ("a/b/mod.rs", "mod c;\nuse super::One;\nuse c::Three;\n"),
            ("a/b/c.rs", "use crate::One;\nuse crate::a::b::Two;\nuse super::super::One as Other;\n"),
        ];
        assert_eq!(found(&files), []);
    }

    #[test]
    fn re_exports_hide_nothing() {
        // Through the root, through a parent's import, and through a renamed import.
        for (lib, b) in [
            ("pub use a::One;\npub use b::Two;\n", "use crate::One;\n"),
            ("pub(crate) use crate::a::{One as Other};\nuse b::Two;\n", "use super::Other;\n"),
            ("use a::{self as first, One};\nuse b::Two;\n", "fn f() { crate::first::One::new(); }\n"),
        ] {
            let lib = format!("mod a;\nmod b;\n{lib}");
            let files =
                [("lib.rs", lib.as_str()), ("a.rs", "use crate::Two;\npub struct One;\n"), ("b.rs", b)];
            assert_eq!(circles_of(&files), [["a.rs", "b.rs"]], "{lib}{b}");
        }
    }

    #[test]
    fn names_of_imported_modules_are_followed() {
        let lib = ("lib.rs", "mod a;\nmod b;\n");
        let a = ("a/mod.rs", "pub mod c;\n");
        let b = ("b.rs", "use crate::a;\nfn f(c: a::c::Three) {}\n");
        assert_eq!(circles_of(&[lib, a, b, ("a/c.rs", "use crate::b::f;\n")]), [["a/c.rs", "b.rs"]]);
    }

    #[test]
    fn tests_comments_and_other_crates_are_not_followed() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod support;\n"),
            ("a.rs", "use crate::b::Two;\n"),
            (
                "b.rs",
                "//! As crate::a says.\nuse a::One;\n#[cfg(test)]\nuse crate::a::{One};\n\
                 const C: &str = \"crate::a\";\n#[cfg(test)]\nmod tests {\n    use crate::a::One;\n}\n",
            ),
            ("support.rs", "use crate::a::One;\nuse crate::b::Two;\n"),
            ("bin/program.rs", "use crate::a::One;\n"),
        ];
        assert_eq!(found(&files), []);
        let real = ("b.rs", "#[cfg(test)]\nfn t() { f() }\nuse crate::a::One;\n");
        assert_eq!(circles_of(&[files[0], files[1], real]), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn modules_within_a_file_are_that_file() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "pub mod inner {\n    use super::One;\n    use super::super::b::Two;\n}\n"),
            ("b.rs", "pub struct Two;\nmod inner { pub struct Three; }\nuse self::inner::Three;\n"),
        ];
        assert_eq!(found(&files), []);
        let back = ("b.rs", "use crate::a::inner::Four;\n");
        assert_eq!(circles_of(&[files[0], files[1], back]), [["a.rs", "b.rs"]]);
    }

    #[test]
    fn what_a_star_brings_in_has_to_be_named() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "use super::*;\nuse crate::b::Kind::*;\nmod inner {\n    use super::*;\n}\n"),
            ("b.rs", "pub enum Kind { One }\nuse Kind::*;\n#[cfg(test)]\nmod tests { use super::*; }\n"),
        ];
        let fix = "name what is used instead of super::*, so that it can be followed".to_owned();
        assert_eq!(found(&files), [("crates/x/src/a.rs".to_owned(), 1, fix)]);
    }
}
