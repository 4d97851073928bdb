//! How many of something a command lists.

/// Reads it from the command line. A list of none would look like a store that holds nothing.
pub(crate) fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("write 1 or more".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}
