//! The user's web browser, which shows the dashboard of a run.

use longwire_rundir::own_uid;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The program that shows an address in the browser that the user has chosen (freedesktop.org, xdg-utils).
const OPENER: &str = "xdg-open";
/// Reads an address and becomes the opener; ends if this process does.
const WAITING: &str = "read -r address && exec \"$0\" \"$address\"";

/// A browser that waits for its address. It is started before a run becomes root in a user namespace:
/// browsers refuse to run as root.
#[derive(Debug)]
pub struct Browser(Child);

impl Browser {
    /// The browser of the user, who watches this process on a terminal of a desktop. None for root, whose
    /// browser would have all of root's rights.
    pub fn of_user() -> Option<Self> {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let has_screen = ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().any(is_set);
        if own_uid() == 0 || !has_screen || !io::stderr().is_terminal() {
            return None;
        }
        Self::start(&program_in(&std::env::var_os("PATH")?)?).ok()
    }

    fn start(opener: &Path) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", WAITING]).arg(opener);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C ends the run, and not the browser.
        command.process_group(0).spawn().map(Self)
    }

    /// Shows an address, which has been printed: that nothing comes of it is no error of the run.
    pub fn show(&mut self, address: &str) {
        if let Some(mut waiting) = self.0.stdin.take() {
            let _ = writeln!(waiting, "{address}");
        }
    }
}

/// The opener in one of the folders of a search path.
fn program_in(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(OPENER)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_opener_gets_the_address() {
        let folder = std::env::temp_dir().join(format!("longwire-browser-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(program_in(folder.as_os_str()), None);
        let opener = folder.join(OPENER);
        fs::write(&opener, format!("#!/bin/sh\necho \"$1\" > {}/shown\n", folder.display())).unwrap();
        fs::set_permissions(&opener, Permissions::from_mode(0o755)).unwrap();
        let path = std::env::join_paths([Path::new("/nonexistent"), &folder]).unwrap();
        let mut browser = Browser::start(&program_in(&path).unwrap()).unwrap();
        browser.show("http://127.0.0.1:8399/?a=1&b=$(id)");
        assert!(browser.0.wait().unwrap().success());
        assert_eq!(fs::read_to_string(folder.join("shown")).unwrap(), "http://127.0.0.1:8399/?a=1&b=$(id)\n");
        let mut unasked = Browser::start(&opener).unwrap();
        drop(unasked.0.stdin.take());
        assert!(!unasked.0.wait().unwrap().success());
        fs::remove_dir_all(&folder).unwrap();
    }
}
