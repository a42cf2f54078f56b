"""Files of a measured arm for production."""

from lab.export.arm_files import ExportFile, export_arm
from lab.export.folder import write_export

__all__ = ["ExportFile", "export_arm", "write_export"]
