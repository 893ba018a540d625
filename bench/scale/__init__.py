"""Heddle on clusters of thousands of nodes: the real API server, controller-manager and scheduler, and KWOK's nodes."""
