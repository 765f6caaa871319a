//! `ravelin contain`: runs a command in the container of a gateway that runs.

use crate::arguments::contain::{ContainArguments, EnterArguments};
use crate::failure::Failure;

/// Runs it to its end, and ends as it did.
#[cfg(target_os = "linux")]
pub(crate) fn run(arguments: &ContainArguments) -> Result<(), Failure> {
    use container::{ContainerError, Namespaces};
    use ports::live::guest_end;
    use std::ffi::OsStr;
    use std::fs;
    let finding = |error: ContainerError| {
        Failure::Finding(format!(
            "{error}: it needs root, and a running gateway with a port of `kind = \"vnic\"`"
        ))
    };
    let folder = &arguments.containers;
    let name = match &arguments.vnic {
        Some(name) => name.clone(),
        None => match &Namespaces::names(folder).map_err(finding)?[..] {
            [only] => only.clone(),
            [] => {
                return Err(Failure::Finding(format!(
                    "there is no container in {}: a gateway with a port of `kind = \"vnic\"` makes one",
                    folder.display()
                )));
            }
            several => {
                let message =
                    format!("there are several containers, {}: say which, by `--vnic`", several.join(", "));
                return Err(Failure::Usage(message));
            }
        },
    };
    let namespaces = Namespaces::open(folder, &name).map_err(finding)?;
    let absolute = |path: &std::path::PathBuf| {
        fs::canonicalize(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
    };
    let mut shown = arguments.show.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
    // Its monitor comes by a socket where the gateway expects it there.
    let socket = container::monitor_socket(folder, &name);
    let by_socket = arguments.guest && socket.exists();
    if by_socket {
        shown.push(absolute(&socket)?);
    }
    let mut inside: Vec<&OsStr> = Vec::new();
    if arguments.guest {
        inside.push(OsStr::new("--monitor"));
    }
    if arguments.sys_admin {
        inside.push(OsStr::new("--sys-admin"));
    }
    for path in &shown {
        inside.extend([OsStr::new("--show"), path.as_os_str()]);
    }
    inside.push(OsStr::new("--"));
    inside.extend(arguments.command.iter().map(|word| word.as_os_str()));
    let link = (arguments.guest && !by_socket)
        .then(|| namespaces.inside(|| guest_end(&name)).map_err(finding))
        .transpose()?;
    let link = link.transpose().map_err(|error| {
        Failure::Finding(format!(
            "the link {name}: {error}: a monitor needs a VNIC with `guest`, and one at a time has it"
        ))
    })?;
    let status = container::start(&namespaces, link, &inside).map_err(finding)?;
    end_as(status)
}

/// Ends as a process did, as shells do.
#[cfg(target_os = "linux")]
fn end_as(status: std::process::ExitStatus) -> ! {
    use std::os::unix::process::ExitStatusExt;
    std::process::exit(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

/// Is process 1 of the container, and ends as the command does.
#[cfg(target_os = "linux")]
pub(crate) fn enter(arguments: &EnterArguments) -> Result<(), Failure> {
    let EnterArguments { users, first_user, starter, monitor, sys_admin, link, show, command } = arguments;
    let inside = container::Inside {
        users: users.clone(),
        first_user: *first_user,
        shown: show.clone(),
        monitor: *monitor,
        sys_admin: *sys_admin,
        starter: *starter,
        link: *link,
        command: command.clone(),
    };
    let ended = container::enter(&inside);
    end_as(ended.map_err(|error| Failure::Finding(format!("the container: {error}")))?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_arguments: &ContainArguments) -> Result<(), Failure> {
    Err(Failure::Finding("a container needs the namespaces of Linux".to_owned()))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn enter(_arguments: &EnterArguments) -> Result<(), Failure> {
    Err(Failure::Finding("a container needs the namespaces of Linux".to_owned()))
}
