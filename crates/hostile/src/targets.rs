//! The fuzz targets: what each does with arbitrary bytes, and its corpus.

use anyhow::Context;
use std::path::Path;

#[path = "../../program/jit/tests/exercise/compiled.rs"]
#[allow(dead_code, reason = "its bench can do more, for the differential tests")]
mod compiled;
#[path = "../../distill/tests/exercise/distill.rs"]
mod distill;
#[path = "../../random/tests/exercise/distribution.rs"]
mod distribution;
#[path = "../../expression/tests/exercise/expression.rs"]
mod expression;
#[path = "../../wire/tests/exercise/frame.rs"]
mod frame;
#[path = "../../import/tests/exercise/import.rs"]
mod import;
#[path = "../../run/tests/exercise/install.rs"]
pub mod install;
#[path = "../../run/tests/exercise/log.rs"]
mod log;
#[path = "../../nesp/tests/exercise/nesp.rs"]
mod nesp;
#[path = "../../program/tests/exercise/program.rs"]
mod program;
#[path = "../../router/tests/router/exercise.rs"]
mod router;
#[path = "../../link/tests/exercise/rules.rs"]
mod rules;
#[path = "../../assemble/tests/exercise/scenario.rs"]
mod scenario;
#[path = "../../trace/tests/exercise/trace.rs"]
mod trace;
#[path = "../../tunnel/tests/exercise/tunnel.rs"]
mod tunnel;
#[path = "../../wire/tests/exercise/virtio.rs"]
mod virtio;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of its file in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Processes arbitrary bytes, and panics if an invariant does not hold.
    pub run: fn(&[u8]),
    /// Folders of its corpus, relative to the workspace.
    pub folders: &'static [&'static str],
}

/// Objects that compilers made.
const OBJECTS: &str = "crates/program/tests/objects";
const SHIPPED: &str = "forwarders/objects";

/// Every target, those for hostile programs first.
pub const ALL: &[Target] = &[
    Target {
        name: "object",
        run: |bytes| _ = program::object(bytes),
        folders: &["fuzz/corpus/object", OBJECTS, SHIPPED],
    },
    Target { name: "bytecode", run: program::bytecode, folders: &["fuzz/corpus/bytecode"] },
    Target {
        name: "compiled",
        run: |bytes| _ = compiled::run(bytes),
        folders: &["fuzz/corpus/bytecode", "fuzz/corpus/object", OBJECTS, SHIPPED],
    },
    Target { name: "install", run: |bytes| _ = install::run(bytes), folders: &["fuzz/corpus/install"] },
    Target { name: "router", run: router::run, folders: &["fuzz/corpus/frame"] },
    Target { name: "frame", run: frame::run, folders: &["fuzz/corpus/frame"] },
    Target { name: "virtio", run: with_pool, folders: &["fuzz/corpus/virtio"] },
    Target { name: "nesp", run: nesp::run, folders: &["fuzz/corpus/nesp"] },
    Target { name: "tunnel", run: tunnel::run, folders: &["fuzz/corpus/tunnel"] },
    Target { name: "expression", run: expression::run, folders: &["fuzz/corpus/expression"] },
    Target { name: "rules", run: rules::run, folders: &["fuzz/corpus/rules"] },
    Target { name: "trace", run: trace::run, folders: &["fuzz/corpus/trace"] },
    Target { name: "distribution", run: distribution::run, folders: &["fuzz/corpus/distribution"] },
    Target { name: "log", run: log::run, folders: &["fuzz/corpus/log"] },
    Target { name: "distill", run: distill::run, folders: &["fuzz/corpus/distill"] },
    Target { name: "import", run: import::run, folders: &["fuzz/corpus/import"] },
    Target { name: "scenario", run: scenario::run, folders: &["fuzz/corpus/scenario", "scenarios"] },
];

impl Target {
    /// Reads the files of its corpus, in the order of folders and names.
    ///
    /// # Errors
    /// If a folder or file can't be read.
    pub fn corpus(&self) -> anyhow::Result<Vec<Vec<u8>>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut all = Vec::new();
        for folder in self.folders {
            let folder = root.join(folder);
            let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
            let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
            // The folders of objects also contain their sources.
            paths.retain(|path| {
                path.is_file() && !matches!(path.extension().and_then(|e| e.to_str()), Some("c" | "h" | "sh"))
            });
            paths.sort();
            for path in paths {
                all.push(std::fs::read(&path).with_context(|| path.display().to_string())?);
            }
        }
        Ok(all)
    }
}

thread_local! {
    static POOL: std::cell::RefCell<longwire_packet::Pool> =
        std::cell::RefCell::new(longwire_packet::Pool::new(2 << 20).expect("two mebibytes"));
}

fn with_pool(bytes: &[u8]) {
    POOL.with_borrow_mut(|pool| virtio::run(pool, bytes));
}
