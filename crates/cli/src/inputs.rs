//! The files that a command reads, which it does not write.

use anyhow::bail;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks that no file to be written is one of the inputs, by whatever path. Devices may be both.
///
/// # Errors
/// If one is.
pub fn keep_inputs<T: AsRef<Path>>(
    targets: impl IntoIterator<Item = T>,
    inputs: &[&Path],
) -> anyhow::Result<()> {
    // Its device and its number there: a link to a file is that file.
    let identity = |path: &Path| {
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some((found.dev(), found.ino()))
    };
    let inputs: Vec<(u64, u64)> = inputs.iter().filter_map(|input| identity(input)).collect();
    let is_input = |target: &T| identity(target.as_ref()).is_some_and(|found| inputs.contains(&found));
    match targets.into_iter().find(is_input) {
        Some(target) => {
            bail!("{} is read, and would be overwritten; name another place", target.as_ref().display())
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_to_inputs_are_inputs() {
        let folder = std::env::temp_dir().join(format!("longwire-inputs-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let [input, soft, hard, other, missing] =
            ["input", "soft", "hard", "other", "missing"].map(|name| folder.join(name));
        fs::write(&input, "").unwrap();
        fs::write(&other, "").unwrap();
        symlink(&input, &soft).unwrap();
        fs::hard_link(&input, &hard).unwrap();
        for (target, passes) in
            [(&input, false), (&soft, false), (&hard, false), (&other, true), (&missing, true)]
        {
            let kept = keep_inputs([target], &[&*input, &*missing]);
            assert_eq!(kept.is_ok(), passes, "{}", target.display());
        }
        fs::remove_dir_all(&folder).unwrap();
        let device = Path::new("/dev/null");
        assert!(keep_inputs([device], &[device]).is_ok());
    }
}
