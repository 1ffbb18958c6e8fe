//! A device's wear as programs tell it: stand-ins in their place, found by PATH.

use lab::account::Wear;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Says that this process has the stand-ins in its PATH.
const ASKS: &str = "LAB_TEST_ASKS_FOR_WEAR";

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("room");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
}

/// What the process of this test says of a device with only `folder` in its PATH.
fn asked(folder: &Path) -> String {
    let program = std::env::current_exe().expect("this test");
    let mut child = Command::new(program);
    child.args(["--exact", "a_device_is_asked_by_the_programs_in_the_path", "--nocapture"]);
    let output = child.env("PATH", folder).env(ASKS, "1").output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_device_is_asked_by_the_programs_in_the_path() {
    if std::env::var_os(ASKS).is_some() {
        println!("{:?}", Wear::of("nvme0n1"));
        return;
    }
    let folder = std::env::temp_dir().join(format!("lab-wear-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("room");
    let found = asked(&folder);
    assert!(found.contains("smartctl is not installed"), "{found}");
    // The device's health is bad (bit 3 of the exit code): its counts are told all the same.
    put(
        &folder,
        "smartctl",
        "#!/bin/sh\n[ \"$*\" = '--json -A /dev/nvme0n1' ] || exit 1\n\
         echo '{\"nvme_smart_health_information_log\": {\"percentage_used\": 101,\
         \"data_units_written\": 20}}'\nexit 8\n",
    );
    let found = asked(&folder);
    let health = "written_bytes: 10240000, flash_bytes: None, used_percent: Some(101)";
    assert!(found.contains(health), "{found}");
    put(
        &folder,
        "nvme",
        "#!/bin/sh\n[ \"$*\" = 'ocp smart-add-log -o json /dev/nvme0n1' ] || exit 1\n\
         echo '{\"Physical media units written\": {\"hi\": 0, \"lo\": 30720000}}'\n",
    );
    let found = asked(&folder);
    assert!(found.contains("flash_bytes: Some(30720000)"), "{found}");
    std::fs::remove_dir_all(&folder).expect("ours");
}
