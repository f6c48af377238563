//! Programs of other projects: how many of their XDP functions load, and the worst case of each.
//!
//! `FOLDER/PROJECT/` has a project's objects, in any subfolders, and a file `REVISION` with the commit that
//! they were compiled from. Neither their sources nor their build is part of Longwire: only names and figures
//! are stored.

mod ask;

use crate::numbers;
use anyhow::{Context, Result, bail};
use ask::{Answer, Longwire};
use longwire_report::{Report, Row};
use std::path::{Path, PathBuf};
use std::time::Instant;

const REVISION: &str = "REVISION";
const MIB: u32 = 1 << 20;

/// Functions written to be refused, by project, object and name.
const MEANT_TO_FAIL: &[[&str; 3]] = &[
    ["xdp-tutorial", "experiment01-tailgrow/xdp_prog_fail1", "_xdp_fail1"],
    ["xdp-tutorial", "experiment01-tailgrow/xdp_prog_fail2", "_xdp_fail2"],
    ["xdp-tutorial", "experiment01-tailgrow/xdp_prog_fail3", "_xdp_fail3"],
    ["xdp-tutorial", "packet01-parsing/xdp_prog_kern", "xdp_parser_func"],
];

/// Functions of objects with XDP programs that run elsewhere, though their section names do not show it.
const ELSEWHERE: &[[&str; 3]] = &[["linux", "xdp2skb_meta_kern", "_tc_mark"]];

/// Maps of a project that exceed the size of an object here, with the number of entries used instead.
const SMALLER: &[(&str, &str, u32)] = &[
    ("katran", "ch_rings", 16 * MIB),
    ("katran", "server_id_map", MIB),
    ("katran", "lpm_src_v4", 1000),
    ("katran", "lpm_src_v6", 1000),
];

/// An object and its origin.
#[derive(Debug)]
struct Object {
    project: String,
    /// Its path in the project's folder, without its ending.
    name: String,
    path: PathBuf,
}

/// A project and the commit that its objects were compiled from.
#[derive(Debug)]
struct Project {
    name: String,
    revision: String,
    objects: Vec<Object>,
}

/// `cargo xtask programs FOLDER`: computes the worst case of every XDP function and stores the results.
///
/// # Errors
/// If the folder has no objects, there is no release build, or the result can't be written.
pub fn run(root: &Path, folder: &str) -> Result<bool> {
    let begun = Instant::now();
    let longwire = Longwire::of(root, numbers::OF_PROGRAMS)?;
    let folder = Path::new(folder);
    let projects = projects(folder)?;
    let mut report = Report::new("programs");
    for project in &projects {
        for object in &project.objects {
            ask_all(&longwire, object, &mut report)?;
        }
    }
    let sums = sums(&projects, &report.rows);
    for row in &sums {
        println!("{}", line(row));
    }
    report.extend(sums);
    numbers::keep_programs(root, &report, begun.elapsed().as_secs())?;
    Ok(true)
}

/// The projects of a folder and their objects, in the order of their names.
fn projects(folder: &Path) -> Result<Vec<Project>> {
    let mut projects = Vec::new();
    for path in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        let mut files = Vec::new();
        self::files(&path, "o", &mut files)?;
        if files.is_empty() {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let revision = std::fs::read_to_string(path.join(REVISION))
            .with_context(|| format!("{name} needs a file {REVISION} with the commit of its sources"))?;
        let object = |file: PathBuf| {
            let below = file.strip_prefix(&path).unwrap_or(&file).with_extension("");
            Object { project: name.clone(), name: below.to_string_lossy().into_owned(), path: file }
        };
        let objects = files.into_iter().map(object).collect();
        projects.push(Project { revision: revision.trim().to_owned(), objects, name });
    }
    if projects.is_empty() {
        bail!("no objects: a folder FOLDER/PROJECT has those of a project, *.o, and a file {REVISION}");
    }
    Ok(projects)
}

/// Adds the files below a folder whose names have this ending.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) -> Result<()> {
    for path in entries(folder)? {
        if path.is_dir() {
            files(&path, ending, found)?;
        } else if path.extension().is_some_and(|found| found == ending) {
            found.push(path);
        }
    }
    Ok(())
}

/// The contents of a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = std::fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let mut paths = read.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Adds a row for each XDP function of an object.
fn ask_all(longwire: &Longwire, object: &Object, report: &mut Report) -> Result<()> {
    let functions = match longwire.functions(&object.path)? {
        Ok(functions) => functions,
        Err(reason) => {
            println!("{}: {}: {reason}", object.project, object.name);
            report.fail(format!("{}: {}: {reason}", object.project, object.name));
            return Ok(());
        }
    };
    let smaller: Vec<(&str, u32)> = SMALLER
        .iter()
        .filter(|(project, ..)| *project == object.project)
        .map(|&(_, map, entries)| (map, entries))
        .collect();
    for function in functions {
        let answer = longwire.worst_case(&object.path, &function, &smaller)?;
        let Some(row) = row(object, &function, answer) else { continue };
        println!("{}", line(&row));
        report.push(row);
    }
    Ok(())
}

/// The row of a function; none if it is no XDP function.
fn row(object: &Object, function: &str, answer: Answer) -> Option<Row> {
    let Object { project, name, .. } = object;
    let here: [&str; 3] = [project, name, function];
    if ELSEWHERE.contains(&here) {
        return None;
    }
    let meant = MEANT_TO_FAIL.contains(&here);
    let row = Row::new(format!("{project}: {name}: {function}"), "ns")
        .extra("project", project.as_str())
        .extra("object", name.as_str())
        .extra("function", function);
    Some(match answer {
        Answer::NoXdp => return None,
        Answer::Loads { picoseconds, maps } => {
            let row = row.measured(picoseconds as f64 / 1000.0).judged(!meant);
            if maps.is_empty() { row } else { row.extra("maps", maps) }
        }
        Answer::Refused(reason) => row.measured("does not load").judged(meant).note(reason),
    })
}

/// Number of functions of each project, and how many load; totals included.
fn sums(projects: &[Project], rows: &[Row]) -> Vec<Row> {
    let sum = |name: &str, revision: &str, of: &dyn Fn(&Row) -> bool| {
        let functions = rows.iter().filter(|row| of(row));
        let loaded = functions.clone().filter(|row| loads(row)).count();
        Row::new(format!("sum: {name}"), "functions")
            .measured(loaded as f64)
            .extra("sum", name)
            .extra("revision", revision)
            .extra("functions", functions.count())
    };
    let each = projects.iter().map(|project| {
        sum(&project.name, &project.revision, &|row| row.extra["project"] == project.name.as_str())
    });
    each.chain([sum("all", "", &|_| true)]).collect()
}

fn loads(row: &Row) -> bool {
    row.measured.as_ref().is_some_and(|value| value.as_f64().is_some())
}

/// The printed line of a row.
fn line(row: &Row) -> String {
    let measured = match row.measured.as_ref().and_then(longwire_report::Scalar::as_f64) {
        Some(loaded) if row.extra.contains_key("sum") => {
            format!("{loaded} of {} functions load", row.extra["functions"])
        }
        Some(nanoseconds) => format!("{nanoseconds} ns"),
        None => "does not load".to_owned(),
    };
    let notes: String = row.notes.iter().map(|note| format!(": {note}")).collect();
    format!("{}: {measured}{notes}", row.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(project: &str, name: &str) -> Object {
        Object { project: project.into(), name: name.into(), path: PathBuf::new() }
    }

    fn loads_in(picoseconds: u64) -> Answer {
        Answer::Loads { picoseconds, maps: vec!["a=64".into()] }
    }

    #[test]
    fn a_refusal_is_right_where_it_is_meant() {
        let refused = || Answer::Refused("byte 14 may not be there".into());
        let fail1 = object("xdp-tutorial", "experiment01-tailgrow/xdp_prog_fail1");
        assert_eq!(row(&fail1, "_xdp_fail1", refused()).unwrap().pass, Some(true));
        assert_eq!(row(&fail1, "_xdp_fail1", loads_in(800)).unwrap().pass, Some(false));
        let other = object("xdp-tutorial", "packet02-rewriting/xdp_prog_kern");
        let row = |answer| row(&other, "xdp_parser_func", answer);
        assert_eq!(row(refused()).unwrap().pass, Some(false), "of this name, another is meant");
        let loaded = row(loads_in(137_400)).unwrap();
        assert_eq!(
            (loaded.pass, line(&loaded).as_str()),
            (Some(true), "xdp-tutorial: packet02-rewriting/xdp_prog_kern: xdp_parser_func: 137.4 ns")
        );
        assert!(row(Answer::NoXdp).is_none());
        let answer = Answer::Refused("no field of struct xdp_md".into());
        assert!(super::row(&object("linux", "xdp2skb_meta_kern"), "_tc_mark", answer).is_none());
    }

    #[test]
    fn sums_are_of_each_project_and_of_all() {
        let [one, two] = ["a", "b"].map(|name| Project {
            name: name.into(),
            revision: format!("{name}1"),
            objects: Vec::new(),
        });
        let (a, b) = (object("a", "x"), object("b", "x"));
        let rows = [
            row(&a, "f", loads_in(800)).unwrap(),
            row(&a, "g", Answer::Refused("why".into())).unwrap(),
            row(&b, "f", loads_in(0)).unwrap(),
        ];
        let sums: Vec<String> = sums(&[one, two], &rows).iter().map(line).collect();
        assert_eq!(
            sums,
            [
                "sum: a: 1 of 2 functions load",
                "sum: b: 1 of 1 functions load",
                "sum: all: 2 of 3 functions load"
            ]
        );
    }

    #[test]
    fn objects_are_found_in_folders_below_and_need_a_revision() {
        let folder = std::env::temp_dir().join(format!("longwire-programs-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("b/sub")).unwrap();
        std::fs::create_dir_all(folder.join("sources")).unwrap();
        assert!(projects(&folder).unwrap_err().to_string().contains("no objects"));
        for file in ["b/z.o", "b/sub/y.bpf.o", "b/sub/y.c"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        assert!(projects(&folder).unwrap_err().to_string().contains("REVISION"));
        std::fs::write(folder.join("b/REVISION"), "abc1234\n").unwrap();
        let found = projects(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((found.len(), found[0].revision.as_str()), (1, "abc1234"));
        let names: Vec<&str> = found[0].objects.iter().map(|object| object.name.as_str()).collect();
        assert_eq!(names, ["sub/y.bpf", "z"]);
    }
}
