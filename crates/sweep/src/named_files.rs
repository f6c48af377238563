//! The files that a scenario names, on whose contents the results depend, too.

use longwire_run::named_files::named_files;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Adds the contents of the files in `folder` that are named: see [`named_files`].
pub(crate) fn add_contents<'n>(hash: &mut Sha256, folder: &Path, names: impl Iterator<Item = &'n str>) {
    for path in named_files(folder, names) {
        // A file that can't be read fails the tasks that need it.
        if let Ok(content) = hash_of(&path) {
            hash.update(content);
        }
    }
}

fn hash_of(path: &Path) -> io::Result<[u8; 32]> {
    let (mut file, mut hash, mut chunk) = (File::open(path)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hash.finalize().into()),
            length => hash.update(&chunk[..length]),
        }
    }
}
