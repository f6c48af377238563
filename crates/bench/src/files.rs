//! Files that a measurement needs.

use crate::BenchError;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Files in a folder of their own, removed when dropped.
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Writes world-readable files with these names and contents for the bench `name`.
    ///
    /// # Errors
    /// If the folder for temporary files is not writable.
    pub fn new<const N: usize>(name: &str, files: [(&str, String); N]) -> Result<Self, BenchError> {
        let folder = std::env::temp_dir().join(format!("longwire-{name}-{}", std::process::id()));
        let failed = BenchError::system("writing files for a bench");
        std::fs::create_dir(&folder).map_err(failed)?;
        let made = Self { folder };
        for (name, text) in files {
            std::fs::write(made.path(name), text).map_err(failed)?;
        }
        std::fs::set_permissions(&made.folder, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(made)
    }

    /// Path of the file with this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What can't be removed stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
