//! The prebuilt objects match the sources.

use super::bench::OBJECTS;
use longwire_program::{Object, ShippedForwarder, verify};
use std::path::{Path, PathBuf};
use std::process::Command;

fn forwarders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../forwarders")
}

/// The tools of `build.sh`; another clang produces different, equally good objects.
const TOOLS: &[&str] = &["clang-14", "llvm-strip-14"];

#[test]
fn objects_are_made_from_their_sources() {
    let missing = |tool: &&&str| Command::new(tool).arg("--version").output().is_err();
    if let Some(tool) = TOOLS.iter().find(missing) {
        println!("skipped: {tool} is not installed, so the objects can't be made again");
        return;
    }
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("forwarders");
    std::fs::create_dir_all(&made).unwrap();
    let ended = Command::new("sh").arg(forwarders().join("build.sh")).arg(&made).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    for (name, object) in OBJECTS {
        let again = std::fs::read(made.join(name).with_extension("o")).unwrap();
        assert!(again == *object, "{name}.o is not what {name}.c gives; run forwarders/build.sh");
    }
}

#[test]
fn objects_describe_the_state_of_their_programs() {
    for shipped in ShippedForwarder::ALL {
        let program = Object::parse(shipped.object).unwrap().program(shipped.function).unwrap();
        let (types, size) = (program.types.clone(), verify(program).unwrap().state_size());
        match types.named("state") {
            Ok(shape) => assert_eq!(shape.size(), u64::from(size), "{}", shipped.name),
            Err(error) => assert_eq!(size, 0, "{}: {error}", shipped.name),
        }
    }
}

#[test]
fn every_source_has_its_object() {
    let mut sources: Vec<String> = std::fs::read_dir(forwarders())
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".c")?.to_owned()))
        .collect();
    sources.sort();
    assert_eq!(sources, OBJECTS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn no_path_is_in_an_object() {
    for (name, object) in OBJECTS {
        // Strings follow a 0; an absolute path continues with letters.
        let rooted =
            |bytes: &[u8]| bytes.starts_with(b"\0/") && bytes[2..].iter().all(u8::is_ascii_alphanumeric);
        assert!(!object.windows(5).any(rooted), "{name}.o");
        let here = env!("CARGO_MANIFEST_DIR").as_bytes();
        assert!(!object.windows(here.len()).any(|bytes| bytes == here), "{name}.o");
    }
}
