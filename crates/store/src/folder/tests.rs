use super::*;
use crate::RequestReason;
use std::fs;
use std::os::unix::fs::symlink;

fn temporary_library() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("films");
    fs::create_dir_all(root.join("tos/deep")).unwrap();
    fs::write(dir.path().join("secret.txt"), "secret").unwrap();
    fs::write(root.join("a.mp4"), "a").unwrap();
    fs::write(root.join(".hidden"), "h").unwrap();
    fs::write(root.join("tos/b.mp4"), "bb").unwrap();
    fs::create_dir(root.join("folder.mp4")).unwrap();
    dir
}

fn parse_key(path: &str) -> Key {
    Key::parse(path).unwrap()
}

fn error_text(folder: &Folder, path: &str) -> Result<String, Error> {
    let object = folder.open(&parse_key(path))?;
    let bytes = object.read(0..object.len(), RequestReason::Plain)?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn files_are_opened_and_listed() {
    let dir = temporary_library();
    let folder = Folder::new(&dir.path().join("films")).unwrap();
    assert_eq!(error_text(&folder, "a.mp4").unwrap(), "a");
    assert_eq!(error_text(&folder, "tos/b.mp4").unwrap(), "bb");
    let listed = folder.list_folder(&Key::ROOT).unwrap();
    let names: Vec<_> = listed
        .iter()
        .map(|e| (e.name.as_str(), e.file.is_some()))
        .collect();
    assert_eq!(
        names,
        [("a.mp4", true), ("folder.mp4", false), ("tos", false)]
    );
    for missing in ["b.mp4", "tos", "folder.mp4", "a.mp4/x"] {
        assert!(
            matches!(folder.open(&parse_key(missing)), Err(Error::NotFound)),
            "{missing}"
        );
    }
    assert!(matches!(
        folder.list_folder(&parse_key("a.mp4")),
        Err(Error::NotFound)
    ));
    assert_eq!(folder.look_up(&parse_key("tos")).unwrap(), None);
    assert_eq!(folder.look_up(&parse_key("a.mp4")).unwrap().unwrap().len, 1);
}

#[test]
fn links_stay_inside() {
    let dir = temporary_library();
    let root = dir.path().join("films");
    symlink("tos/b.mp4", root.join("inside.mp4")).unwrap();
    symlink(root.join("tos"), root.join("absolute")).unwrap();
    symlink("../secret.txt", root.join("outside.txt")).unwrap();
    symlink("/etc", root.join("etc")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("gone", root.join("dangling")).unwrap();
    let folder = Folder::new(&root).unwrap();
    assert_eq!(error_text(&folder, "inside.mp4").unwrap(), "bb");
    assert_eq!(error_text(&folder, "absolute/b.mp4").unwrap(), "bb");
    for out in ["outside.txt", "etc/hostname", "etc"] {
        let error = error_text(&folder, out).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{out}: {error}");
    }
    assert!(matches!(
        error_text(&folder, "loop"),
        Err(Error::Refused(_))
    ));
    assert!(matches!(
        error_text(&folder, "dangling"),
        Err(Error::NotFound)
    ));
    let listed = folder.list_folder(&Key::ROOT).unwrap();
    assert!(
        listed
            .iter()
            .all(|entry| !["outside.txt", "etc", "loop"].contains(&&*entry.name))
    );
}

#[test]
fn links_that_leave_the_library_are_followed_if_allowed() {
    let dir = temporary_library();
    let root = dir.path().join("films");
    let disk = dir.path().join("disk2");
    fs::create_dir_all(disk.join("series")).unwrap();
    fs::write(disk.join("series/e1.mp4"), "one").unwrap();
    // This link creates a cycle of folders outside of the library. Listings must omit the link.
    symlink("..", disk.join("series/up")).unwrap();
    symlink(&disk, root.join("disk2")).unwrap();
    symlink("../secret.txt", root.join("one.mp4")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    let folder = Folder::new(&root).unwrap();
    assert!(matches!(
        error_text(&folder, "disk2/series/e1.mp4"),
        Err(Error::Refused(_))
    ));
    let folder = folder.with_outside_links(true);
    assert_eq!(error_text(&folder, "disk2/series/e1.mp4").unwrap(), "one");
    assert_eq!(error_text(&folder, "one.mp4").unwrap(), "secret");
    for refused in ["magic/etc/hostname", "loop"] {
        let error = error_text(&folder, refused).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{refused}: {error}");
    }
    let names = |path: &str| -> Vec<String> {
        let listed = folder.list_folder(&Key::parse(path).unwrap()).unwrap();
        listed.into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(
        names(""),
        ["a.mp4", "disk2", "folder.mp4", "one.mp4", "tos"]
    );
    assert_eq!(names("disk2/series"), ["e1.mp4"]);
    assert!(Key::parse("disk2/../../secret.txt").is_err());
}

#[test]
fn links_to_a_folder_above_are_not_listed() {
    let dir = temporary_library();
    let root = dir.path().join("films");
    symlink(".", root.join("here")).unwrap();
    symlink("..", root.join("tos/up")).unwrap();
    symlink("../deep", root.join("tos/deep/again")).unwrap();
    symlink("tos/deep", root.join("aside")).unwrap();
    let folder = Folder::new(&root).unwrap();
    let names = |path: &str| -> Vec<String> {
        let key = Key::parse(path).unwrap();
        let listed = folder.list_folder(&key).unwrap();
        listed.into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(names(""), ["a.mp4", "aside", "folder.mp4", "tos"]);
    assert_eq!(names("tos"), ["b.mp4", "deep"]);
    assert!(names("tos/deep").is_empty());
}

#[test]
fn special_files_are_not_found() {
    let dir = temporary_library();
    let root = dir.path().join("films");
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    rustix::fs::mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let folder = Folder::new(&root).unwrap();
    assert!(matches!(
        folder.open(&parse_key("socket")),
        Err(Error::NotFound)
    ));
    assert!(matches!(
        folder.open(&parse_key("pipe")),
        Err(Error::NotFound)
    ));
    assert_eq!(folder.list_folder(&Key::ROOT).unwrap().len(), 3);
}

#[test]
fn a_single_file_is_a_library_of_one() {
    let dir = temporary_library();
    let folder = Folder::new(&dir.path().join("films/a.mp4")).unwrap();
    assert_eq!(error_text(&folder, "a.mp4").unwrap(), "a");
    assert_eq!(folder.list_folder(&Key::ROOT).unwrap().len(), 1);
    for other in ["tos/b.mp4", "tos", "folder.mp4"] {
        assert!(matches!(
            folder.look_up(&parse_key(other)),
            Err(Error::NotFound)
        ));
    }
    assert!(Folder::new(&dir.path().join("films/.hidden")).is_err());
    assert!(Folder::new(&dir.path().join("nothing")).is_err());
}

#[test]
fn companions_of_a_single_file_are_files_that_continue_its_name() {
    let dir = temporary_library();
    let root = dir.path().join("films");
    for name in [
        "a.en.srt",
        "a.VTT",
        "ab.srt",
        "b.srt",
        "a.en.txt",
        "tos/a.srt",
    ] {
        fs::write(root.join(name), name).unwrap();
    }
    symlink(dir.path().join("secret.txt"), root.join("a.fr.srt")).unwrap();
    let folder = Folder::new(&root.join("a.mp4")).unwrap();
    let folder = folder.with_companions(&["srt", "vtt"]);
    let names = |prefix| {
        let entries = folder.list_prefixed(&Key::ROOT, prefix).unwrap();
        let names = entries.into_iter().map(|entry| entry.name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["a.VTT", "a.en.srt", "a.mp4"]);
    assert_eq!(names("a.e"), ["a.en.srt"]);
    assert_eq!(error_text(&folder, "a.en.srt").unwrap(), "a.en.srt");
    for other in [
        "ab.srt",
        "b.srt",
        "a.en.txt",
        "a.fr.srt",
        "tos/a.srt",
        "tos",
    ] {
        assert!(error_text(&folder, other).is_err(), "{other}");
    }
}
