module ipu.fabric/programs/pause

go 1.25.0
