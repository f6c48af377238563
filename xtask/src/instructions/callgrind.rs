//! Parser for profiles of valgrind's callgrind: instructions executed per source file.
//!
//! The format is described in valgrind's manual ("Callgrind Format Specification"): lines that name a file
//! (`fl=`, `fi=`, `fe=`), numbers in place of names that occurred before, lines of costs, and after each
//! `calls=` one line with the cost of the called function.

use std::collections::HashMap;

/// Instructions by source file.
///
/// `path` is the compiler's path of the file, or `???` if unknown.
pub fn by_file(text: &str) -> HashMap<String, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut sums: HashMap<String, u64> = HashMap::new();
    let (mut file, mut of_call) = ("???", false);
    for line in text.lines() {
        if let Some(named) = ["fl=", "fi=", "fe="].iter().find_map(|key| line.strip_prefix(key)) {
            file = resolve(named, &mut names);
        } else if let Some(named) = ["cfl=", "cfi="].iter().find_map(|key| line.strip_prefix(key)) {
            // The file of a called function, which may be named here for the first time.
            resolve(named, &mut names);
        } else if line.starts_with("calls=") {
            of_call = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            // A position, then the cost, if any.
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
            if !std::mem::take(&mut of_call)
                && let Some(cost) = cost
            {
                *sums.entry(file.to_owned()).or_default() += cost;
            }
        }
    }
    sums
}

/// `(3) name` assigns a number to a name, `(3)` refers to it.
fn resolve<'t>(named: &'t str, names: &mut HashMap<&'t str, &'t str>) -> &'t str {
    match named.split_once(' ') {
        Some((number, name)) if number.starts_with('(') => {
            names.insert(number, name);
            name
        }
        _ => names.get(named).copied().unwrap_or(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_go_to_the_file_that_was_named_last_and_calls_count_nowhere() {
        let text = "positions: line\nevents: Ir\n\nob=(1) program\nfl=(1) a.rs\nfn=(1) one\n16 400\n+2 7\n\
            cfi=(2) b.rs\ncfn=(2) two\ncalls=3 +5\n* 1000\nfi=(2)\n-1 40\nfe=(1)\n* 3\nfl=(2)\nfn=(2)\n20 5\n\
            totals: 1455\n";
        let sums = by_file(text);
        assert_eq!((sums["a.rs"], sums["b.rs"], sums.len()), (410, 45, 2));
        assert!(by_file("").is_empty());
    }
}
