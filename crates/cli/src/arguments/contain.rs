//! The command line of `ravelin contain`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `ravelin contain`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo ravelin contain -- sh
  sudo ravelin contain --show /srv/tftp -- dnsmasq --keep-in-foreground
  sudo ravelin contain --vnic services -- ip address
  sudo ravelin contain --sys-admin --show /srv/router -- sh /srv/router/start-frr
  sudo ravelin contain --guest --show /srv/router -- qemu-system-x86_64 -nodefaults -display none -serial stdio \\
      -drive file=/srv/router/disk.img,snapshot=on -netdev tap,id=link,fd=3 \\
      -device virtio-net-pci,netdev=link,mac=02:00:00:00:01:01
  sudo ravelin contain --guest --show /srv/router -- qemu-system-x86_64 -nodefaults -display none -serial stdio -m 512 \\
      -object memory-backend-memfd,id=memory,size=512M,share=on -machine memory-backend=memory \\
      -drive file=/srv/router/disk.img,snapshot=on -chardev socket,id=gateway,path=/run/ravelin/services.vhost \\
      -netdev vhost-user,id=link,chardev=gateway -device virtio-net-pci,netdev=link,mac=02:00:00:00:01:01

Inside, the VNIC is the only link, files of the machine cannot be written, and what is private is hidden. The container ends \
with the command.")]
pub(crate) struct ContainArguments {
    /// The container: the name of the interface of its VNIC; needed if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) vnic: Option<String>,
    /// The folder that keeps the namespaces, as `containers` in the gateway's file says
    #[arg(long, default_value = gateway::config::CONTAINERS, value_name = "FOLDER")]
    pub(crate) containers: PathBuf,
    /// The command is the monitor of a virtual machine: of a VNIC with `guest = true` it gets the
    /// link as its descriptor 3, a TAP device's queue with virtio-net headers; of one with `guest =
    /// "vhost-user"` it sees the socket NAME.vhost of the folder
    #[arg(long)]
    pub(crate) guest: bool,
    /// Root inside has CAP_SYS_ADMIN, which the daemons of FRR ask for; calls that make namespaces, enter
    /// them or mount are refused to the command
    #[arg(long)]
    pub(crate) sys_admin: bool,
    /// A file or folder of the machine to show inside, although it is hidden otherwise; may be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) show: Vec<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `ravelin enter-container`
#[derive(Debug, Args)]
pub(crate) struct EnterArguments {
    /// The file of the user namespace
    pub(crate) users: PathBuf,
    /// The user outside that is root inside
    pub(crate) first_user: u32,
    /// The end for reading of a pipe that closes when the starter of this process ends
    pub(crate) starter: i32,
    /// The command is the monitor of a virtual machine
    #[arg(long)]
    pub(crate) monitor: bool,
    /// Root has CAP_SYS_ADMIN
    #[arg(long)]
    pub(crate) sys_admin: bool,
    /// The descriptor that the command gets as number 3
    #[arg(long)]
    pub(crate) link: Option<i32>,
    /// What is to be shown
    #[arg(long)]
    pub(crate) show: Vec<PathBuf>,
    /// The command
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}
