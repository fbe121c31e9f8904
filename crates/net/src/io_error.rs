//! Describes errors of the operating system for operators.

use std::io::{Error, ErrorKind};

/// Returns the cause and, if there is a usual remedy, the remedy. The number of the system error is
/// omitted.
pub fn describe_io_error(error: &Error) -> String {
    let mut cause = error.to_string();
    if let Some(start) = cause.find(" (os error ")
        && let Some(length) = cause.get(start..).and_then(|rest| rest.find(')'))
    {
        cause.replace_range(start..=start + length, "");
    }
    let remedy = match error.kind() {
        // An error without a system error number does not come from the operating system. The text
        // of such an error already contains the remedy, if there is one.
        _ if error.raw_os_error().is_none() => "",
        ErrorKind::NotFound => "; check the path",
        ErrorKind::PermissionDenied => "; run as a user with access, or change the permissions",
        ErrorKind::IsADirectory => "; give a file",
        ErrorKind::NotADirectory => "; give a folder",
        ErrorKind::StorageFull => "; free some space",
        ErrorKind::ConnectionRefused => "; check the address, and that the server runs",
        ErrorKind::AddrInUse => "; stop the program that uses the port, or choose another port",
        ErrorKind::AddrNotAvailable => "; choose an address of this machine, such as 127.0.0.1",
        _ => "",
    };
    format!("{cause}{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_has_a_remedy_and_no_number() {
        let error = std::fs::read("/no/such/file").unwrap_err();
        let text = describe_io_error(&error);
        assert_eq!(text, "No such file or directory; check the path");
    }

    #[test]
    fn an_error_of_a_program_is_unchanged() {
        let error = Error::new(ErrorKind::NotFound, "no film; add one");
        assert_eq!(describe_io_error(&error), "no film; add one");
        let inside = Error::other("x: refused (os error 111); start it");
        assert_eq!(describe_io_error(&inside), "x: refused; start it");
    }
}
