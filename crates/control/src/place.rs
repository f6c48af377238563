//! Names of the instances' sockets.

use longwire_rundir::{PlaceError, is_usable, shared_directory};
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Longest name of an instance in a socket's name: the path must fit in the 108 bytes of a socket's address.
const MAX_NAME: usize = 40;

/// Longest name of a router in a socket's name.
const MAX_ROUTER: usize = 20;

/// A running instance's socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceSocket {
    /// The instance's name.
    pub name: String,
    /// Its process id in its own PID namespace.
    pub pid: u32,
    /// Its socket.
    pub path: PathBuf,
}

impl InstanceSocket {
    /// Its name with its process number, by which it differs from others of its name.
    pub(crate) fn full_name(&self) -> String {
        let number = format!("-{}", self.pid);
        // Those of single links have the number in their names.
        if self.name.ends_with(&number) { self.name.clone() } else { self.name.clone() + &number }
    }

    /// Whether `wanted` is its name, its process number, or both.
    pub(crate) fn is_called(&self, wanted: &str) -> bool {
        let Self { name, pid, .. } = self;
        name == wanted || pid.to_string() == wanted || format!("{name}-{pid}") == wanted
    }
}

/// The socket's file name. Characters of the name other than letters, digits, dots and underscores become
/// hyphens.
pub(crate) fn file_name(name: &str, pid: u32) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
    let plain: String = name.chars().take(MAX_NAME).map(plain).collect();
    // Hidden names are used for sockets that do not answer yet.
    let plain = plain.trim_start_matches('.');
    let plain = if plain.is_empty() { "longwire" } else { plain };
    format!("{plain}-{pid}.sock")
}

/// The path of the socket for control processes of a router of the instance `name`, which is this process.
pub fn control_socket(directory: &Path, name: &str, router: &str) -> PathBuf {
    let instance = file_name(name, std::process::id());
    let router = router_name(router);
    directory.join(format!("{}.{router}.control", instance.trim_end_matches(".sock")))
}

/// A router's name in a socket's name. One that is too long, or has other characters, is shortened and
/// changed, and ends with a hash, so that no two routers have the same socket.
fn router_name(router: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let short: String = router.chars().take(MAX_ROUTER).map(plain).collect();
    if short == router {
        return short;
    }
    // FNV-1a.
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = router.bytes().fold(0x811c_9dc5, mix);
    format!("{}-{hash:08x}", &short[..short.len().min(MAX_ROUTER - 9)])
}

/// The sockets in a directory and in its shared sibling for groups, by name, without checking that they are
/// served.
pub(crate) fn sockets(directory: &Path) -> Result<Vec<InstanceSocket>, PlaceError> {
    let mut found = sockets_in(directory)?;
    // Another user's files there must not prevent listing.
    found.extend(sockets_in(&shared_directory(directory)).unwrap_or_default());
    found.sort();
    Ok(found)
}

fn sockets_in(directory: &Path) -> Result<Vec<InstanceSocket>, PlaceError> {
    let failed = |source| PlaceError::Io { path: directory.into(), source };
    // Another user who could place a socket there would receive this user's requests.
    if !is_usable(directory)? {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(directory) {
        // Root's directory is closed to others, who only see the shared one.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|n| n.to_str()).and_then(parse_file_name);
        found.extend(name.map(|(name, pid)| InstanceSocket { name, pid, path }));
    }
    Ok(found)
}

/// Removes the sockets of a killed instance, including those of its routers for control processes.
pub(crate) fn clear(found: &InstanceSocket) {
    // Another client may have removed any of them meanwhile.
    let _ = fs::remove_file(&found.path);
    let (Some(directory), Some(own)) = (found.path.parent(), found.path.file_stem().and_then(|n| n.to_str()))
    else {
        return;
    };
    let is_own = |file: &str| {
        let router = file.strip_prefix(own).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".control"));
        router.is_some_and(|router| !router.contains('.'))
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_own) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Sockets that belong to no listed instance: those of routers for control processes whose instance has no
/// socket of its own, and hidden ones whose process has ended. Their instance has just started, or was killed
/// before its socket answered.
pub(crate) fn unlisted(directory: &Path) -> Vec<PathBuf> {
    let unlisted_in = |directory: &Path| {
        if !matches!(is_usable(directory), Ok(true)) {
            return Vec::new();
        }
        let names = fs::read_dir(directory).into_iter().flatten().flatten();
        let names: HashSet<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let is_unlisted = |name: &&String| match name.strip_prefix('.') {
            Some(hidden) => process_of(hidden).is_some_and(|pid| !Path::new("/proc").join(pid).exists()),
            None => instance_of(name).is_some_and(|instance| !names.contains(&format!("{instance}.sock"))),
        };
        names.iter().filter(is_unlisted).map(|name| directory.join(name)).collect()
    };
    [directory.to_owned(), shared_directory(directory)].iter().flat_map(|path| unlisted_in(path)).collect()
}

/// The instance, `name-pid`, of a router's socket for control processes.
fn instance_of(file: &str) -> Option<&str> {
    let (instance, _) = file.strip_suffix(".control")?.rsplit_once('.')?;
    let (_, pid) = instance.rsplit_once('-')?;
    pid.parse::<u32>().is_ok().then_some(instance)
}

/// The process of a socket, by the name that it is renamed to.
fn process_of(file: &str) -> Option<String> {
    let instance = file.strip_suffix(".sock").or_else(|| instance_of(file))?;
    let (_, pid) = instance.rsplit_once('-')?;
    pid.parse::<u32>().is_ok().then(|| pid.to_owned())
}

fn parse_file_name(file: &str) -> Option<(String, u32)> {
    let (name, pid) = file.strip_suffix(".sock")?.rsplit_once('-')?;
    let pid = pid.parse().ok()?;
    (!name.is_empty() && !name.starts_with('.')).then(|| (name.into(), pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_router_has_a_socket_of_its_own() {
        let long = "x".repeat(MAX_ROUTER);
        let [longer, other] = ["1", "2"].map(|end| format!("{long}{end}"));
        let routers = ["r1", "r-1", "r.1", "r_1", "r 1", "ä", "ö", &long, &longer, &other];
        let names: HashSet<String> = routers.into_iter().map(router_name).collect();
        assert_eq!(names.len(), routers.len(), "{names:?}");
        for name in names {
            assert!(name.len() <= MAX_ROUTER && !name.contains('.'), "{name}");
        }
        // Most names are as they are.
        assert_eq!((router_name("r-1"), router_name(&long)), ("r-1".into(), long));
    }

    #[test]
    fn an_instance_is_called_by_name_number_or_both() {
        let socket = |name: &str| InstanceSocket { name: name.into(), pid: 7, path: PathBuf::new() };
        let (lab, attach) = (socket("lab"), socket("attach-7"));
        assert_eq!((lab.full_name(), attach.full_name()), ("lab-7".into(), "attach-7".into()));
        assert!(["lab", "7", "lab-7"].into_iter().all(|wanted| lab.is_called(wanted)));
        assert!(["attach-7", "7", "attach-7-7"].into_iter().all(|wanted| attach.is_called(wanted)));
        assert!(!["lab-", "lab-77", "77", ""].into_iter().any(|wanted| lab.is_called(wanted)));
    }

    #[test]
    fn what_an_instance_leaves_is_cleared_and_nothing_else() {
        let directory = std::env::temp_dir().join(format!("longwire-clear-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let own = control_socket(&directory, "a", "r.1");
        let pid = std::process::id();
        let others =
            [format!("a-{pid}.b-7.r1.control"), format!("a-{pid}1.r1.control"), format!("a-{pid}.pid")];
        let path = directory.join(file_name("a", pid));
        let files = others.iter().map(|name| directory.join(name)).chain([own.clone(), path.clone()]);
        files.for_each(|file| fs::write(file, "").unwrap());
        clear(&InstanceSocket { name: "a".into(), pid, path: path.clone() });
        assert!(!path.exists() && !own.exists());
        assert!(others.iter().all(|name| directory.join(name).exists()));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn sockets_that_no_instance_has_are_found() {
        let directory = std::env::temp_dir().join(format!("longwire-unlisted-{}", std::process::id()));
        longwire_rundir::prepare(&directory).unwrap();
        let own = std::process::id();
        // Process numbers end below 2²², so that there is no process 4294967295.
        let (hidden, routers) = (".a-4294967295.sock", ".a-4294967295.r1.control");
        let left = ["b-7.r1.control".to_owned(), "b-7.r-2.control".into(), hidden.into(), routers.into()];
        let kept = [
            "a-7.sock".to_owned(),
            "a-7.r1.control".into(),
            format!(".a-{own}.sock"),
            format!(".a-{own}.r1.control"),
            ".lock".into(),
            "b.control".into(),
            "b-x.r1.control".into(),
        ];
        for name in left.iter().chain(&kept) {
            fs::write(directory.join(name), "").unwrap();
        }
        let found: HashSet<PathBuf> = unlisted(&directory).into_iter().collect();
        assert_eq!(found, left.iter().map(|name| directory.join(name)).collect());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn names_are_written_and_read_back() {
        let cases = [
            ("demo", "demo-7.sock"),
            ("a/b c", "a-b-c-7.sock"),
            ("..x", "x-7.sock"),
            ("", "longwire-7.sock"),
        ];
        for (name, file) in cases {
            assert_eq!(file_name(name, 7), file);
            assert_eq!(parse_file_name(file).unwrap().1, 7);
        }
        assert_eq!(parse_file_name("two-parts-12.sock"), Some(("two-parts".into(), 12)));
        assert!(file_name(&"x".repeat(500), u32::MAX).len() < 60);
        for file in [".demo-7.sock", "demo-7", "demo.sock", "demo-x.sock", "-7.sock"] {
            assert_eq!(parse_file_name(file), None, "{file}");
        }
    }
}
