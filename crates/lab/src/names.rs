//! Names of labs, hosts and interfaces: they become paths, and are printed.

use crate::{LabError, Result};

/// Checks the name of a lab.
pub fn check_instance(instance: &str) -> Result<()> {
    check_name("lab", instance, 32)
}

/// Refuses names that are not valid as file names or host names.
pub fn check_name(what: &'static str, name: &str, longest: usize) -> Result<()> {
    let error = |reason| Err(LabError::Name { what, name: name.to_owned(), reason });
    if name.is_empty() || name.len() > longest {
        return error("use 1 to 32 characters for a lab, 1 to 63 for a host");
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return error("starts with something else than a letter or a digit");
    }
    if name.contains(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.')) {
        return error("use letters, digits, \"-\", \"_\" and \".\" only");
    }
    if what == "host" && matches!(name, "core" | "localhost") {
        return error("means something else already; choose another");
    }
    Ok(())
}

/// Whether a name is valid for an interface.
pub fn is_interface(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=15).contains(&name.len()) && name.chars().all(fits) && name != "." && name != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_files() {
        for name in ["a", "node-1", "a.b_c", "9"] {
            check_name("host", name, 63).unwrap();
        }
        let long = "x".repeat(64);
        for name in ["", ".", "..", "a/b", "-a", "ä", "a b", "core", "localhost", &long] {
            assert!(check_name("host", name, 63).is_err(), "{name}");
        }
    }
}
