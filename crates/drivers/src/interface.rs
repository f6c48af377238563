//! Settings of drivers with an interface.

use longwire_settings::{Fallback, Grammar, Param, ParamKind, Reading};
use std::path::Path;
use std::sync::Arc;

/// Longest name of an interface (IFNAMSIZ without its end).
const LONGEST: usize = 15;

/// The name of an interface, valid for the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceName(pub String);

/// The setting for the interface; a driver's own field has the help. By default the scenario uses the port's
/// name.
pub(crate) const INTERFACE: Param = Param {
    name: "interface",
    kind: ParamKind::Parsed(Grammar {
        wanted: "the name of an interface",
        read,
        examples: &["eth0"],
        form: None,
    }),
    default: Fallback::Value(""),
    help: "",
    live: false,
};

/// The setting for the number of workers that share it.
pub(crate) const QUEUES: Param = Param {
    name: "queues",
    kind: ParamKind::Integer { min: 1, max: 64 },
    default: Fallback::Value("1"),
    help: "",
    live: false,
};

fn read(text: &str, _folder: &Path) -> Reading {
    let bad = text.len() > LONGEST
        || text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
        || matches!(text, "." | "..");
    if bad {
        return Err(format!(
            "\"{text}\" can't be the name of an interface; interface names have 1 to 15 characters without \
             blanks, slashes and colons"
        ));
    }
    Ok(Arc::new(InterfaceName(text.into())))
}
