"""What people and the controller share in the lake: approvals, holds, lifted blocks, and the files of both."""
